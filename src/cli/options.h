// Options that several commands share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "card/card.h"
#include "cli/notices.h"
#include "input/numbers.h"
#include "model/model.h"
#include "report/json.h"
#include "report/output.h"

namespace CLI {
class App;
}

namespace memwall {

class Device;

// Items of a list that is not read yet, so that too many are refused first. Parts of one assignment
// ("experts=mxfp4,rest=q8_0") are one item.
std::size_t items_of(const std::string& list);

// "f16,q8_0" split at commas; no item may be empty. Throws InputError; `option` names the list in the
// message.
std::vector<std::string> split_list(const std::string& text, const char* option);

// A weight format as people write it, with a note where the word leaves a choice. Throws InputError; `option`
// names the option in the message, as in those below.
Format parse_weights(const std::string& name, const char* option);

// "1,8", "8k,128k", "1-64*2": counts, each once, with a note on a repeated one. Throws InputError.
std::vector<std::int64_t> parse_counts(const std::string& text, const char* option, Range range);

// "h100,4090": cards, each once, with notes on what was taken and on a repeated one. Throws InputError.
std::vector<Card> parse_cards(const std::string& text, const char* option);

// --format and --output.
struct OutputOptions {
  std::string format;  // empty: not given
  std::string output;
  void add(CLI::App& command);
  // --format, else what the ending of --output names (.json, .csv, .md), else a table. A note where the two
  // differ. Throws InputError for an unknown format, and for a format's name given as the file.
  OutputFormat chosen() const;
};

// MODEL, --weights, --head-weights and --kv. Formats are lists; every combination is a model of its own.
struct ModelOptions {
  std::string model;
  std::string weights;
  std::string head_weights;
  std::string kv;
  void add(CLI::App& command);
  std::vector<Model> load() const;  // throws InputError
};

// --batch and --context.
struct WorkloadOptions {
  std::string batch = "1";
  std::string context = "1024";
  void add(CLI::App& command);
  std::vector<std::int64_t> batches() const;
  std::vector<std::int64_t> contexts() const;
};

// --device, --threads, --cpus, --numa and --memory.
// --seed: a whole number from 0 to 2^63 - 1. Throws InputError.
std::uint64_t parse_seed(const std::string& text);

struct DeviceOptions {
  std::string device = "auto";
  std::string threads;
  std::string cpus;
  std::string numa = "local";
  std::string memory;
  bool strict = false;  // unstable figures are a failure
  void add(CLI::App& command);
  // As open_device does (cuda/open_device.h), its notice on standard error. Warns where the system refuses to
  // interleave, or has nothing to interleave.
  std::unique_ptr<Device> open() const;
  // The same, what there is to say of the choice given to `notice` and `warning`.
  std::unique_ptr<Device> open(const std::function<void(const std::string&)>& notice,
                               const std::function<void(const std::string&)>& warning) const;
  // True where the device may be a GPU, which is opened in a process of its own.
  bool may_be_gpu() const;
  std::int64_t memory_bytes() const;  // 0 where none was given; throws InputError
};

// The model's own warnings, and one where the longest context passes its maximum. Printed, too.
std::vector<std::string> warn_of(const Model& model, const std::vector<std::int64_t>& contexts);

// One result in every form: the JSON document, its rows, its text. Only the form asked for is made.
struct Result {
  std::function<Json()> json;
  std::function<std::vector<Json>()> rows;
  std::function<std::string(const Style&)> text;
};
void write_result(Output& output, OutputFormat format, const Result& result);
// What there is of it until now; of an output that is a file.
void write_snapshot(Output& output, OutputFormat format, const Result& result);

}  // namespace memwall
