// What every reader says of models that are no decoders, behind their name.
#pragma once

namespace memwall {

inline constexpr const char* kIsEncoder = "is an encoder, which embeds texts and decodes none";
inline constexpr const char* kIsEncoderDecoder = "is an encoder-decoder; memwall counts decoder-only models";

}  // namespace memwall
