// The tasks that find out what a device's memory and arithmetic do.
#pragma once

#include <array>
#include <vector>

#include "bench/device.h"

namespace memwall {

const char* stream_name(StreamPattern pattern);  // "read", "copy", ...

// Over arrays of the read probe's slice.
StreamTask stream_probe(const DeviceInfo& info, StreamPattern pattern, bool nontemporal = false);

// GEMMs whose rates are the arithmetic peaks, as far as the device has a way to run them. The CPU computes in
// f32 whatever the storage.
std::vector<MatmulTask> peak_tasks(const DeviceInfo& info);

// What a CPU's instructions are probed for, on registers alone.
inline constexpr std::array kProbedTypes = {ComputeType::f32, ComputeType::f16, ComputeType::bf16,
                                            ComputeType::int8};

}  // namespace memwall
