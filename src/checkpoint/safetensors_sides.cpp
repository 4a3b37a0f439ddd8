#include "checkpoint/safetensors_sides.h"

#include <array>
#include <cctype>
#include <filesystem>

#include "format/checked.h"

namespace memwall {

std::string_view side_of_file(std::string_view file) {
  constexpr std::array<std::string_view, 9> kSides = {"mtp",    "nextn",  "eagle", "draft",     "medusa",
                                                      "visual", "vision", "audio", "speculator"};
  file.remove_suffix(std::string_view(".safetensors").size());
  for (const std::string_view side : kSides) {
    const std::size_t at = file.find(side);
    if (at == std::string_view::npos) continue;
    // A word of its own: "mtp", "model-mtp", "mtp_layers-00001-of-00002", but not "amtpx".
    const auto is_end = [&](std::size_t i) {
      return i >= file.size() || std::isalnum(static_cast<unsigned char>(file[i])) == 0;
    };
    if ((at == 0 || is_end(at - 1)) && is_end(at + side.size())) return side;
  }
  return {};
}

void read_side_files(const std::string& folder, const std::vector<std::string>& files, HeaderBudget& budget,
                     Checkpoint& checkpoint) {
  for (const std::string& name : files) {
    const std::size_t first = checkpoint.tensors.size();
    read_safetensors_header((std::filesystem::path(folder) / name).string(), budget, checkpoint);
    // Its names may be the model's, too: "layers.0" of a draft model is not the model's.
    const std::string prefix = std::string(side_of_file(name)) + ".";
    for (std::size_t i = first; i < checkpoint.tensors.size(); ++i) {
      StoredTensor& tensor = checkpoint.tensors[i];
      if (!tensor.name.starts_with(prefix)) tensor.name.insert(0, prefix);
      checkpoint.side_bytes = checked_add(checkpoint.side_bytes, tensor.bytes);
    }
  }
}

}  // namespace memwall
