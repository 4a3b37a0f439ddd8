// What the headers of safetensors files say: names, shapes, types and sizes of tensors. The tensors' data are
// never read. Format: github.com/huggingface/safetensors, whose rules these readers hold files to.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/stored_tensor.h"

namespace memwall {

struct Checkpoint {
  std::string path;                             // as given
  std::vector<std::string> files;               // the *.safetensors that were read, sorted
  std::vector<StoredTensor> tensors;            // sorted by name, none twice
  std::int64_t data_bytes = 0;                  // of `tensors`
  std::map<std::string, std::string> metadata;  // "format": "pt"; of several files the first's word counts
  // What an index states as metadata.total_size. Some real ones are wrong: it may differ from data_bytes.
  std::optional<std::int64_t> index_total_size;
  // Of data_bytes, what files beside the model's hold (mtp.safetensors), which no index tells of.
  std::int64_t side_bytes = 0;
  // Tensors that shards hold though the index does not place them there. They are in no other figure.
  std::int64_t unlisted_tensors = 0;
  std::int64_t unlisted_bytes = 0;
};

// One file. Throws InputError where it is no safetensors file, cut short, or breaks the format's rules.
Checkpoint read_safetensors_file(const std::string& path);

// The shards that a *.safetensors.index.json names, which must lie beside it. Throws InputError where one is
// missing or lacks a tensor that the index places there.
Checkpoint read_safetensors_index(const std::string& path);

// A folder with one model: an index, a single file, a full set NAME-1-of-N.safetensors to -N-of-N, or files
// whose names differ in their numbers alone. Without an index, files such as mtp.safetensors or
// vision.safetensors beside them are the model's extras: the names of their tensors get that word in front.
// Throws InputError where it holds none, several, or a set with gaps.
Checkpoint read_safetensors_folder(const std::string& path);

}  // namespace memwall
