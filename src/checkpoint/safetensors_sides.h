// Files beside a model's own: mtp.safetensors, vision.safetensors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors_header.h"

namespace memwall {

// What a file (NAME.safetensors) beside the model's holds, by its name; empty for the model's own. The words
// are those by which a tensor's path tells of a part that decoding text does not run.
std::string_view side_of_file(std::string_view file);

// Appends the tensors of these files of a folder, each under the name of its side ("mtp.fc.weight"), so that
// they are taken for none of the model's. Throws InputError.
void read_side_files(const std::string& folder, const std::vector<std::string>& files, HeaderBudget& budget,
                     Checkpoint& checkpoint);

}  // namespace memwall
