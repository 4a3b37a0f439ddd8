#include "cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "input/error.h"
#include "input/suggest.h"

namespace memwall {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw InputError(message); }

bool is_help(const std::string& word) { return word == "-h" || word == "--help"; }

// "-1" is a number, "-" a file name; the dashes that text programs put in place of two hyphens count as such.
bool looks_like_option(const std::string& word) {
  if (word.rfind("\u2013", 0) == 0 || word.rfind("\u2014", 0) == 0) return true;
  return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9') && word[1] != '.';
}

std::string without_dashes(std::string word) {
  for (const std::string dash : {"-", "\u2013", "\u2014"}) {
    while (word.rfind(dash, 0) == 0) word.erase(0, dash.size());
  }
  return word;
}

std::vector<std::string> long_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The nearest, where it is near enough to be meant: a third of its letters may differ.
std::vector<std::string> meant(const std::string& word, const std::vector<std::string>& candidates) {
  std::vector<std::string> near;
  for (const std::string& candidate : nearest(word, candidates, 2)) {
    if (is_near(word, candidate)) near.push_back(candidate);
  }
  if (near.size() == 2 && edits(word, near[0]) < edits(word, near[1])) near.pop_back();
  return near;
}

const CLI::Option* find_option(const CLI::App& command, const std::string& name) {
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional() && option->check_name(name)) return option;
  }
  return nullptr;
}

[[noreturn]] void refuse_unknown_option(const CLI::App& app, const CLI::App& command,
                                        const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const std::string bare = without_dashes(name);
  const std::vector<std::string> own = long_options(command);
  if (std::find(own.begin(), own.end(), "--" + bare) != own.end())
    refuse(fmt::format("unknown option '{}'; did you mean '--{}'?", name, bare));
  std::vector<std::string> others;
  for (const CLI::App* other : app.get_subcommands({})) {
    if (find_option(*other, name) != nullptr && name.rfind("--", 0) == 0) others.push_back(other->get_name());
  }
  if (!others.empty()) {
    refuse(fmt::format("{}: '{}' is an option of {}, not of this command; `memwall {} --help` lists its own",
                       command.get_name(), name, fmt::join(others, ", "), command.get_name()));
  }
  const std::vector<std::string> near = meant("--" + bare, own);
  refuse(near.empty()
             ? fmt::format("unknown option '{}'; `memwall {} --help` lists them", name, command.get_name())
             : fmt::format("unknown option '{}'; did you mean '{}'?", name, fmt::join(near, "' or '")));
}

std::vector<std::string> names_of(const std::vector<const CLI::App*>& commands) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands) names.push_back(command->get_name());
  return names;
}

// The command that the first argument names.
const CLI::App& command_of(const CLI::App& app, const std::vector<std::string>& arguments) {
  const std::vector<const CLI::App*> commands = app.get_subcommands({});
  const std::vector<std::string> names = names_of(commands);
  if (arguments.size() < 2)
    refuse(fmt::format("no command given; it is {}; `memwall --help` says what each does", join_or(names)));
  const std::string& word = arguments[1];
  for (const CLI::App* command : commands) {
    if (command->get_name() == word) return *command;
  }
  if (looks_like_option(word)) {
    const std::string name = word.substr(0, word.find('='));
    for (const CLI::App* command : commands) {
      if (find_option(*command, name) != nullptr)
        refuse(fmt::format("the command comes before its options: `memwall COMMAND {} ...`", name));
    }
    refuse(fmt::format(
        "unknown option '{}'; `memwall --help` lists the commands and their options come after them", name));
  }
  refuse(fmt::format("unknown command '{}'; did you mean {}? `memwall --help` lists them", word,
                     join_or(nearest(word, names, 1))));
}

// Walks the arguments of one command as the parser will.
class Walk {
 public:
  Walk(const CLI::App& app, const CLI::App& command, const std::vector<std::string>& arguments)
      : app_(app), command_(command), arguments_(arguments) {}

  void run() {
    bool only_positionals = false;
    for (next_ = 2; next_ < arguments_.size(); ++next_) {
      const std::string& word = arguments_[next_];
      if (!only_positionals && word == "--") {
        only_positionals = true;
      } else if (!only_positionals && looks_like_option(word)) {
        option(word);
      } else {
        positionals_.push_back(word);
      }
    }
    check_positionals();
    for (const CLI::Option* option : command_.get_options()) {
      if (option->get_required() && !option->get_positional() && given_.count(option) == 0)
        refuse(fmt::format("{}: {} is missing: {}", command_.get_name(), option->get_name(),
                           option->get_description()));
    }
  }

 private:
  // "--name VALUE", "--name=VALUE", "-n VALUE", "-nVALUE", "--flag".
  void option(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const CLI::Option* option = find_option(command_, name);
    if (option == nullptr) {
      const bool is_short = word.size() > 2 && word[1] != '-' && word[0] == '-';
      option = is_short ? find_option(command_, word.substr(0, 2)) : nullptr;
      const std::vector<std::string> own = long_options(command_);
      const bool one_dash = is_short && std::find(own.begin(), own.end(), "-" + name) != own.end();
      if (option == nullptr || one_dash) refuse_unknown_option(app_, command_, word);
      given_.insert(option);
      return;
    }
    given_.insert(option);
    const bool is_flag = option->get_items_expected_max() == 0;
    if (is_flag) {
      if (equals != std::string::npos)
        refuse(fmt::format("{} is a flag and takes no value: leave '{}' out", name, word.substr(equals)));
      return;
    }
    if (equals != std::string::npos) return;
    const bool has_value =
        next_ + 1 < arguments_.size() &&
        !(looks_like_option(arguments_[next_ + 1]) &&
          find_option(command_, arguments_[next_ + 1].substr(0, arguments_[next_ + 1].find('='))) != nullptr);
    if (!has_value) refuse(fmt::format("{}: its value is missing: {}", name, option->get_description()));
    ++next_;
  }

  void check_positionals() const {
    std::vector<const CLI::Option*> wanted;
    for (const CLI::Option* option : command_.get_options()) {
      if (option->get_positional()) wanted.push_back(option);
    }
    if (positionals_.size() > wanted.size()) {
      const std::string& extra = positionals_[wanted.size()];
      refuse(wanted.empty()
                 ? fmt::format("{} takes no argument like '{}'", command_.get_name(), extra)
                 : fmt::format("{}: one argument too many: '{}'; a list has commas and no blanks, a name "
                               "with blanks stands in quotes",
                               command_.get_name(), extra));
    }
    for (std::size_t i = positionals_.size(); i < wanted.size(); ++i) {
      if (wanted[i]->get_required())
        refuse(fmt::format("{}: {} is missing: {}", command_.get_name(), wanted[i]->get_name(true),
                           wanted[i]->get_description()));
    }
  }

  const CLI::App& app_;
  const CLI::App& command_;
  const std::vector<std::string>& arguments_;
  std::size_t next_ = 0;
  std::vector<std::string> positionals_;
  std::set<const CLI::Option*> given_;
};

}  // namespace

void check_arguments(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.size() > 1 && (is_help(arguments[1]) || arguments[1] == "--version")) return;
  const CLI::App& command = command_of(app, arguments);
  if (std::find_if(arguments.begin() + 2, arguments.end(), is_help) != arguments.end()) return;
  Walk(app, command, arguments).run();
}

}  // namespace memwall
