// memwall models, memwall cards: what the zoo and the card list hold.
#include <CLI/CLI.hpp>
#include <memory>

#include "card/card.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "load/load_model.h"
#include "report/figures.h"
#include "report/rows.h"
#include "report/text.h"

namespace memwall {
namespace {

// A command that prints a list of things, each with its figures.
template <typename Thing>
void add_list(CLI::App& app, Invocation& invocation, const std::string& name, const std::string& help,
              std::vector<Thing> (*load)(), Json (*figures)(const Thing&),
              std::string (*text)(const std::vector<Thing>&, const Style&)) {
  CLI::App* command = app.add_subcommand(name, help);
  const auto options = std::make_shared<OutputOptions>();
  options->add(*command);
  command->callback([=, &invocation] {
    invocation.run = [=, &invocation] {
      const OutputFormat format = options->chosen();
      const std::vector<Thing> things = load();
      Output output(options->output);
      const auto list = [&] {
        std::vector<Json> all;
        for (const Thing& thing : things) all.push_back(figures(thing));
        return all;
      };
      write_result(output, format,
                   {.json =
                        [&] {
                          Json json = document(name, circumstances_now(invocation.arguments));
                          json[name] = list();
                          return json;
                        },
                    .rows =
                        [&] {
                          std::vector<Json> rows = list();
                          for (Json& row : rows) row = flatten(row);
                          return rows;
                        },
                    .text = [&](const Style& style) { return text(things, style); }});
    };
  });
}

}  // namespace

void add_models(CLI::App& app, Invocation& invocation) {
  add_list<Model>(app, invocation, "models", "The models of the zoo", zoo, model_figures, models_text);
}

void add_cards(CLI::App& app, Invocation& invocation) {
  add_list<Card>(app, invocation, "cards", "The cards, their peaks and ridge points", all_cards, card_figures,
                 cards_text);
}

}  // namespace memwall
