// Binary units: capacity and file sizes are counted in these, bandwidth in powers of ten.
#pragma once

namespace memwall {

inline constexpr double kMiB = 1024.0 * 1024.0;
inline constexpr double kGiB = 1024.0 * kMiB;

}  // namespace memwall
