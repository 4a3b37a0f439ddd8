// The kernels of the memory probes, for tests of all of them: launches that name one each.
#pragma once

#include <vector>

#include "kernels/cuda/stream.h"

namespace memwall::cuda {

inline std::vector<StreamLaunch> stream_reads() {
  return {{.unroll = 4},
          {.unroll = 8},
          {.unroll = 16},
          {.full = true},
          {.threads = 512, .full = true},
          {.path = ReadPath::copies},
          {.path = ReadPath::bulk, .unroll = 4},
          {.path = ReadPath::bulk, .unroll = 2}};
}

inline std::vector<StreamLaunch> stream_kernels() {
  std::vector<StreamLaunch> launches = stream_reads();
  for (const StreamKind kind : {StreamKind::copy, StreamKind::scale, StreamKind::add, StreamKind::triad}) {
    for (const bool streaming : {false, true}) {
      for (const bool full : {false, true})
        launches.push_back({.kind = kind, .full = full, .streaming = streaming});
    }
  }
  for (const StreamType type : {StreamType::f16, StreamType::bf16}) {
    for (const bool streaming : {false, true})
      launches.push_back({.kind = StreamKind::add, .type = type, .streaming = streaming});
  }
  return launches;
}

}  // namespace memwall::cuda
