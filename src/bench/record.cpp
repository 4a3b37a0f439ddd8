#include "bench/record.h"

namespace nlohmann {

template <class T>
struct adl_serializer<std::optional<T>> {
  static void to_json(json& record, const std::optional<T>& value) {
    if (value) {
      record = *value;
    } else {
      record = nullptr;
    }
  }
  static void from_json(const json& record, std::optional<T>& value) {
    if (record.is_null()) {
      value.reset();
    } else {
      value = record.get<T>();
    }
  }
};

}  // namespace nlohmann

namespace memwall {

// Every field of each: a field that is added is added here.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Interval, low, high)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Summary, n, median, q1, q3, ci95)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Check, outputs, worst)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(VariantFigure, name, seconds, failed, refused)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Disturbance, discarded, kept, others, elsewhere, steal)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Measurement, variant, variants, seconds, fastest, bytes, flops, padding,
                                   touched, first_drawn, of_read_bandwidth, read_rate, of_same_size_read,
                                   alone_seconds, clock_MHz, slowed_samples, slowed_by, disturbance, stop,
                                   copies, huge_page_share, launches_per_sample, check)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepHolding, layers_held, all_experts, copies, matrices_a_copy, bytes,
                                   cold_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepKind, kind, launches, bytes, seconds, alone_seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepFusion, ops, members, launches, seconds, parts_seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WholeStep, seconds, fastest, bytes, of_read_bandwidth, cold, partial,
                                   disturbance, stop, holding, layers, steps_per_sample, read_rate,
                                   parts_read_rate, barrier_seconds, kinds, fusions, costly_launches)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PlacedProbe, variant, huge_page_share)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Outcome, measurement, whole, probe, read_samples, failed, shortage)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuFacts, multiprocessors, pci_id, driver, cuda, cublas, ecc, card,
                                   card_is_datasheet, datasheet_GBps, clocks_unknown)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeviceInfo, name, kind, threads, cpus, cores, pinned, numa_nodes, numa,
                                   instruction_set, blas, l1d_bytes, l2_bytes, last_level_bytes,
                                   available_bytes, cold_caches, read_slice_bytes, read_buffer_bytes,
                                   costly_launches, matmul_n, gpu)

nlohmann::json record_of(const Outcome& outcome) { return outcome; }

nlohmann::json record_of(const DeviceInfo& info) { return info; }

Outcome outcome_of(const nlohmann::json& record) { return record.get<Outcome>(); }

DeviceInfo device_info_of(const nlohmann::json& record) { return record.get<DeviceInfo>(); }

}  // namespace memwall
