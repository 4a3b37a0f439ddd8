#include "bench/probes.h"

namespace memwall {

const char* stream_name(StreamPattern pattern) {
  switch (pattern) {
    case StreamPattern::read:
      return "read";
    case StreamPattern::copy:
      return "copy";
    case StreamPattern::scale:
      return "scale";
    case StreamPattern::add:
      return "add";
    case StreamPattern::triad:
      return "triad";
  }
  return "";
}

StreamTask stream_probe(const DeviceInfo& info, StreamPattern pattern, bool nontemporal) {
  return {.pattern = pattern, .nontemporal = nontemporal, .bytes = info.read_slice_bytes};
}

std::vector<MatmulTask> peak_tasks(const DeviceInfo& info) {
  std::vector<MatmulTask> tasks;
  for (const FormatKind kind : {FormatKind::f32, FormatKind::f16, FormatKind::bf16, FormatKind::f8_e4m3}) {
    if (!info.gpu && kind != FormatKind::f32) break;
    tasks.push_back({.n = info.matmul_n, .format = {kind, 0, false}});
  }
  return tasks;
}

}  // namespace memwall
