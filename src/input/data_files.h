// The YAML files memwall ships: where they are, what they hold, and finding one by name or alias.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

// The folder that holds models/ and configs/: MEMWALL_DATA where it is set; share/memwall beside an
// installed program; the source tree when the program runs from its build. Throws InputError.
std::string data_folder();

// One kind of shipped file, e.g. the cards: a folder of NAME.yaml files.
struct Shelf {
  std::string what;    // "model", in messages
  std::string folder;  // below the data folder
};

// The stems of the shelf's files, sorted. Throws InputError where the folder cannot be read.
std::vector<std::string> shelf_names(const Shelf& shelf);

// The path of the file that `word` means: a name or an alias of the shelf (letters' case ignored), else a
// file of that path. Throws InputError naming the nearest three where it is neither. Aliases are the
// `aliases` lists of the files; they are read only when no name matches.
std::string find_on_shelf(const Shelf& shelf, std::string_view word);

}  // namespace memwall
