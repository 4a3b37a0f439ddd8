#include "huggingface/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support.h"

namespace memwall {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Config config(const std::string& text) { return Config(json::parse(text, "c.json")); }

TEST(Config, FindsTheFirstNameThatIsThere) {
  const Config c = config(R"({"n_embd": 4, "d_model": 5, "n_kv": null, "attn": {"kv": 3}})");
  EXPECT_EQ(c.integer({"hidden_size", "n_embd", "d_model"}), 4);
  EXPECT_EQ(c.integer_or({"n_kv"}, 7), 7);
  EXPECT_EQ(c.integer({"attn.kv"}), 3);
  EXPECT_EQ(c.find({"attn.kv.deeper"}), nullptr);
  EXPECT_FALSE(c.maybe_integer({"n_kv"}));
  EXPECT_EQ(error_of([&] {
              static_cast<void>(c.integer({"n_kv", "heads", "num_heads"}));
            }),
            "c.json:1:37: no n_kv (also called heads, num_heads)");
}

TEST(Config, ReadsTheLanguageModelOfACompositeOne) {
  const Config c = config(R"({"model_type": "outer", "hidden_size": 1, "tie_word_embeddings": true,
      "dtype": "float16", "text_config": {"model_type": "inner", "hidden_size": 2}})");
  EXPECT_EQ(c.type(), "inner");
  EXPECT_EQ(c.outer_type(), "outer");
  EXPECT_TRUE(c.nested());
  EXPECT_EQ(c.integer({"hidden_size"}), 2);
  EXPECT_EQ(c.find({"dtype"}), nullptr);
  EXPECT_NE(c.find({"dtype"}, true), nullptr);
  EXPECT_EQ(c.outer_flag("tie_word_embeddings"), true);
  EXPECT_EQ(c.outer_flag("nothing"), std::nullopt);
}

TEST(Config, ANestThatIsNoObjectIsNone) {
  const Config c = config(R"({"model_type": "flat", "text_config": null, "hidden_size": 1})");
  EXPECT_FALSE(c.nested());
  EXPECT_EQ(c.integer({"hidden_size"}), 1);
}

TEST(Config, DefaultsFillWhatIsLeftOutNotWhatIsNull) {
  Config c = config(R"({"model_type": "t", "stated": null, "set": 3})");
  c.set_defaults(R"({"stated": 5, "left_out": 6, "set": 7})");
  EXPECT_EQ(c.integer_or({"stated"}, 1), 1);
  EXPECT_EQ(c.integer_or({"left_out"}, 1), 6);
  EXPECT_EQ(c.integer_or({"set"}, 1), 3);
}

TEST(Config, FlagsMayBeNumbers) {
  const Config c = config(R"({"a": true, "b": 0, "c": 1, "d": 2, "e": "true"})");
  EXPECT_TRUE(c.flag_or({"a"}, false));
  EXPECT_FALSE(c.flag_or({"b"}, true));
  EXPECT_TRUE(c.flag_or({"c"}, false));
  EXPECT_TRUE(c.flag_or({"missing"}, true));
  EXPECT_NE(error_of([&] { static_cast<void>(c.flag_or({"d"}, false)); }).find("c.json:1:"),
            std::string::npos);
  EXPECT_NE(error_of([&] { static_cast<void>(c.flag_or({"e"}, false)); }).find("c.json:1:"),
            std::string::npos);
}

TEST(Config, IntegersAreWholeAndNotNegative) {
  const Config c = config(R"({"a": 4096.0, "b": 4.096e3, "c": 1.5, "d": -1, "e": "4", "f": 1e300})");
  EXPECT_EQ(c.integer({"a"}), 4096);
  EXPECT_EQ(c.integer({"b"}), 4096);
  for (const char* key : {"c", "d", "e", "f"}) {
    EXPECT_NE(error_of([&] { static_cast<void>(c.integer({key})); }).find("must be a whole number"),
              std::string::npos)
        << key;
  }
}

TEST(Config, ListsMayBeTexts) {
  const Config c =
      config(R"({"a": [1, true], "b": "3, 4,5", "c": "", "d": 3, "e": ["x", "y"], "f": "x,y", "g": [null]})");
  EXPECT_THAT(c.integers({"a"}), ElementsAre(1, 1));
  EXPECT_THAT(c.integers({"b"}), ElementsAre(3, 4, 5));
  EXPECT_THAT(c.integers({"c"}), IsEmpty());
  EXPECT_THAT(c.integers({"missing"}), IsEmpty());
  EXPECT_THAT(c.texts({"e"}), ElementsAre("x", "y"));
  EXPECT_NE(error_of([&] { c.texts({"f"}); }).find("f must be a list of texts, not the text 'x,y'"),
            std::string::npos);
  EXPECT_NE(error_of([&] { c.integers({"g"}); }).find("g must be a whole number"), std::string::npos);
  EXPECT_NE(error_of([&] { c.integers({"d"}); }).find("d must be a list of integers"), std::string::npos);
  EXPECT_NE(error_of([&] { c.texts({"d"}); }).find("d must be a list"), std::string::npos);
  EXPECT_NE(error_of([&] { c.integers({"f"}); }).find("f must be a list of integers"), std::string::npos);
}

TEST(Config, ALayersOwnOrTheOneOfAll) {
  const Config c = config(R"({"all": 7, "each": [5, true, null, "x"], "text": "3,4"})");
  EXPECT_EQ(c.layer_integer_or({"all"}, 9, 0), 7);
  EXPECT_EQ(c.layer_integer_or({"each"}, 0, 0), 5);
  EXPECT_EQ(c.layer_integer_or({"each"}, 1, 0), 1);
  EXPECT_NE(error_of([&] { static_cast<void>(c.layer_integer_or({"each"}, 2, 9)); }).find("not null"),
            std::string::npos);
  EXPECT_NE(error_of([&] { static_cast<void>(c.layer_integer_or({"text"}, 1, 0)); }).find("text must be"),
            std::string::npos);
  EXPECT_EQ(c.layer_integer_or({"missing"}, 1, 2), 2);
  EXPECT_NE(error_of([&] { static_cast<void>(c.layer_integer_or({"each"}, 3, 0)); }).find("whole number"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              static_cast<void>(c.layer_integer_or({"each"}, 4, 0));
            }).find("each lists 4 layers, but there is a layer 4"),
            std::string::npos);
}

TEST(Config, TellsWhatWasNeverAskedFor) {
  const Config c = config(R"({"model_type": "t", "hidden_size": 1, "bos_token_id": 2, "attn_pdrop": 0.1,
      "rope_theta": 1e4, "memory_slots": 3})");
  EXPECT_THAT(c.unasked(), ElementsAre("hidden_size", "memory_slots"));
  static_cast<void>(c.integer({"hidden_size"}));
  EXPECT_THAT(c.unasked(), ElementsAre("memory_slots"));
}

TEST(Config, IsAnObject) {
  for (const char* text : {"[]", "1", "\"x\"", "null", "true"}) {
    EXPECT_NE(error_of([&] { config(text); }).find("a config.json is one object"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace memwall
