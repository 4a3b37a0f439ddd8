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
  std::string what;                       // "model", in messages
  std::string folder;                     // below the data folder
  std::vector<std::string> ignored = {};  // words of a name that say nothing: a card's vendor
  bool endings = false;                   // names may end in words that are left aside: "-Instruct", "-AWQ"
  bool memory = false;                    // names may state a memory that is left aside: "80GB HBM3"
  std::string otherwise = {};             // what an unknown word's message ends with
};

// The stems of the shelf's files, sorted. Throws InputError where the folder cannot be read.
std::vector<std::string> shelf_names(const Shelf& shelf);

// The path of the shelf's file of that stem.
std::string shelf_path(const Shelf& shelf, const std::string& name);

// The path of the file that `word` means: a name, an alias or a title of the shelf, however it is spelt, with
// or without its owner ("meta-llama/Llama-3.1-8B", "hf.co/..."); else a file of that path. What looks like a
// path and is one is taken before any name, and needs no shelf. Where the word says less than a name ("a100",
// "qwen3-30b", "Qwen3-8B-AWQ") what was taken is added to `notes`. Throws InputError with the choices where
// it means several, with the nearest three where it means none.
std::string find_on_shelf(const Shelf& shelf, std::string_view word,
                          std::vector<std::string>* notes = nullptr);

}  // namespace memwall
