#include "input/suggest.h"

#include <algorithm>
#include <cctype>

namespace memwall {

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

namespace {

// A word longer than any name is far from all of them anyway.
std::string comparable(std::string_view word) { return lower_case(word.substr(0, 64)); }

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::size_t edits(std::string_view a, std::string_view b) {
  return edit_distance(comparable(a), comparable(b));
}

bool is_near(std::string_view a, std::string_view b) {
  return 3 * edits(a, b) <= std::max(a.size(), b.size());
}

std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates,
                                 std::size_t most) {
  struct Scored {
    double score;
    const std::string* name;
  };
  const std::string query = comparable(word);
  std::vector<Scored> scored;
  for (const std::string& candidate : candidates) {
    const std::string name = comparable(candidate);
    double score = static_cast<double>(edit_distance(query, name));
    const bool contained =
        !query.empty() && (name.find(query) != std::string::npos || query.find(name) != std::string::npos);
    if (contained) score *= 0.3;
    scored.push_back({score, &candidate});
  }
  std::stable_sort(scored.begin(), scored.end(),
                   [](const Scored& a, const Scored& b) { return a.score < b.score; });
  std::vector<std::string> result;
  for (const Scored& s : scored) {
    if (result.size() == most) break;
    result.push_back(*s.name);
  }
  return result;
}

std::string join_or(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace memwall
