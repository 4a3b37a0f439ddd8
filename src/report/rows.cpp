#include "report/rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "input/printable.h"

namespace memwall {
namespace {

std::string array_text(const std::string& key, const Json& value) {
  if (key == "layers") return number_ranges(value.get<std::vector<long long>>());
  std::string text;
  for (const Json& item : value) {
    if (!text.empty()) text += ';';
    text += item.is_string() ? item.get<std::string>() : item.dump();
  }
  return text;
}

void flatten_into(const Json& object, const std::string& prefix, Json& flat) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix.empty() ? key : prefix + "." + key;
    if (value.is_object()) {
      flatten_into(value, name, flat);
    } else if (value.is_array()) {
      const bool of_objects =
          std::any_of(value.begin(), value.end(), [](const Json& v) { return v.is_object(); });
      if (!of_objects) flat[name] = array_text(key, value);
    } else {
      flat[name] = value;
    }
  }
}

std::string cell(const Json& row, const std::string& column) {
  const auto it = row.find(column);
  if (it == row.end() || it->is_null()) return "";
  if (it->is_string()) return printable(it->get<std::string>());
  if (it->is_number_float()) return fmt::format("{:.10g}", it->get<double>());
  return it->dump();
}

std::string csv_quote(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string markdown_escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

std::string number_ranges(const std::vector<long long>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(numbers[i]);
    if (end > i) text += '-' + std::to_string(numbers[end]);
    i = end + 1;
  }
  return text;
}

Json flatten(const Json& object) {
  Json flat = Json::object();
  flatten_into(object, "", flat);
  return flat;
}

void RowWriter::note(const Json& row) {
  for (const auto& [key, value] : row.items()) {
    auto column = std::find_if(columns_.begin(), columns_.end(),
                               [&, &name = key](const Column& known) { return known.name == name; });
    if (column == columns_.end()) column = columns_.insert(column, Column{key});
    if (!value.is_number() && !value.is_null()) column->numeric = false;
  }
}

std::string RowWriter::csv_head() const {
  std::string text;
  for (const Column& column : columns_) text += (text.empty() ? "" : ",") + column.name;
  return text + "\n";
}

std::string RowWriter::csv_line(const Json& row) const {
  std::string text;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (i > 0) text += ',';
    text += csv_quote(cell(row, columns_[i].name));
  }
  return text + "\n";
}

std::string RowWriter::markdown_head() const {
  std::string text = "|";
  for (const Column& column : columns_) text += " " + column.name + " |";
  text += "\n|";
  for (const Column& column : columns_) text += column.numeric ? " ---: |" : " --- |";
  return text + "\n";
}

std::string RowWriter::markdown_line(const Json& row) const {
  std::string text = "|";
  for (const Column& column : columns_) text += " " + markdown_escape(cell(row, column.name)) + " |";
  return text + "\n";
}

std::string to_csv(const std::vector<Json>& rows) {
  RowWriter writer;
  for (const Json& row : rows) writer.note(row);
  std::string text = writer.csv_head();
  for (const Json& row : rows) text += writer.csv_line(row);
  return text;
}

std::string to_markdown(const std::vector<Json>& rows) {
  RowWriter writer;
  for (const Json& row : rows) writer.note(row);
  std::string text = writer.markdown_head();
  for (const Json& row : rows) text += writer.markdown_line(row);
  return text;
}

}  // namespace memwall
