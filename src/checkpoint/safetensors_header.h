// The header of one safetensors file, for the readers of safetensors.h.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/safetensors.h"

namespace memwall {

// What all headers of a checkpoint, and its index, may hold together: a hostile file must cost neither more
// than 256 MiB nor much more than a second. 400,000 tensors take 43 MiB, and 21 more while their vector
// grows, their shapes at most 49 MiB, and names no more than the JSON they came from; an index's map takes 16
// MiB and its names. The largest models known have 210,000 tensors and 50 MB of JSON.
struct HeaderBudget {
  std::int64_t json_bytes = 100'000'000;  // the format's own limit for one file
  std::int64_t tensors = 400'000;
  std::int64_t metadata_bytes = std::int64_t{16} << 20;
};

// Appends the file's tensors, sorted by name, to `checkpoint`, and its path to the files; merges its
// metadata. Throws InputError.
void read_safetensors_header(const std::string& path, HeaderBudget& budget, Checkpoint& checkpoint);

// Sorts the tensors by name and sums their bytes. Throws InputError where a name stands in two files.
void finish_checkpoint(Checkpoint& checkpoint);

}  // namespace memwall
