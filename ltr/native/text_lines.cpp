// Lines of texts: three of the fields of every line, as columns, where ASCII white space separates fields; and which
// lines are the same.
#include <algorithm>
#include <bit>
#include <charconv>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "arrays.h"
#include "module.h"

namespace ltr {
namespace {

bool is_space(char letter) { return letter == ' ' || (letter >= '\t' && letter <= '\r'); }

// A column under construction: entries with a line feed behind each.
struct Column {
  std::span<std::uint8_t> room;
  std::size_t size = 0;

  void add(std::string_view entry) {
    std::copy(entry.begin(), entry.end(), room.begin() + static_cast<std::ptrdiff_t>(size));
    size += entry.size();
    room[size++] = '\n';
  }
};

// The double nearest to the number that a text stands for, NaN where Python has to say what it is.
double number_of(std::string_view text) {
  double found = std::numeric_limits<double>::quiet_NaN();
#ifdef __cpp_lib_to_chars
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), found);
  if (error != std::errc() || end != text.data() + text.size()) return std::numeric_limits<double>::quiet_NaN();
#endif
  return found;
}

// Write the first field of each run of lines that have it in common, the number of these lines, and the third and the
// `value`-th field of every line, the latter also as a number. Empty lines are skipped. Return the sizes of the
// columns, and the number of the first line that has not `fields` fields, which ends the columns, or 0.
nb::tuple read_columns(Vector<std::uint8_t> text, std::size_t fields, std::size_t value, OutVector<std::uint8_t> first,
                       OutVector<std::int64_t> counts, OutVector<std::uint8_t> third, OutVector<std::uint8_t> values,
                       OutVector<double> numbers) {
  const std::size_t size = text.shape(0);
  // an entry and its line feed take no more than a field and the white space behind it, which the last may lack
  require(first.shape(0) > size && third.shape(0) > size && values.shape(0) > size, "room for all entries");
  require(fields > 2 && value < fields, "fields of a line");
  const auto* at = reinterpret_cast<const char*>(text.data());
  const char* const end = at + size;
  Column columns[] = {{view(first)}, {view(third)}, {view(values)}};
  std::size_t runs = 0, lines = 0;
  std::int64_t bad = 0;
  {
    const nb::gil_scoped_release release;
    std::vector<std::string_view> found(fields);
    std::string_view before;
    for (std::int64_t line = 1; at < end && bad == 0; ++line) {
      std::size_t number = 0;
      while (at < end && *at != '\n') {
        const char* const begin = at;
        at = std::find_if(at, end, is_space);
        if (at == begin) {
          ++at;
          continue;
        }
        if (number < fields) found[number] = {begin, static_cast<std::size_t>(at - begin)};
        ++number;
      }
      if (at < end) ++at;
      if (number == 0) continue;
      const bool fresh = runs == 0 || found[0] != before;
      if (number != fields || (fresh && runs == counts.shape(0)) || lines == numbers.shape(0)) {
        bad = line;
        continue;
      }
      if (fresh) {
        columns[0].add(before = found[0]);
        counts.data()[runs++] = 0;
      }
      ++counts.data()[runs - 1];
      columns[1].add(found[2]);
      columns[2].add(found[value]);
      numbers.data()[lines++] = number_of(found[value]);
    }
  }
  return nb::make_tuple(columns[0].size, runs, columns[1].size, columns[2].size, bad);
}

// For each line of a text, which ends with a line feed, write the number of the first line of the same group that is
// the same. Return the number of lines, or one more than there are groups if there are more lines.
std::size_t first_lines(Vector<std::int64_t> groups, Vector<std::uint8_t> text, OutVector<std::int64_t> out) {
  const std::span<const std::int64_t> group = view(groups);
  const std::span<std::int64_t> first = view(out);
  require(first.size() == group.size(), "a number for each line");
  const auto* at = reinterpret_cast<const char*>(text.data());
  const char* const end = at + text.shape(0);
  const nb::gil_scoped_release release;
  std::vector<std::string_view> lines;
  lines.reserve(group.size());
  // open addressing: a slot has one more than the number of a line, and 0 if it is free
  const std::size_t slots = std::bit_ceil(2 * group.size() + 2);
  std::vector<std::size_t> table(slots);
  while (at < end) {
    const char* const stop = std::find(at, end, '\n');
    const std::size_t line = lines.size();
    if (line == group.size()) return line + 1;
    lines.emplace_back(at, static_cast<std::size_t>(stop - at));
    at = stop + (stop < end);
    std::size_t slot =
        std::hash<std::string_view>{}(lines[line]) + 0x9e3779b97f4a7c15U * static_cast<std::size_t>(group[line]);
    for (slot &= slots - 1; table[slot] != 0; slot = (slot + 1) & (slots - 1)) {
      const std::size_t other = table[slot] - 1;
      if (group[other] == group[line] && lines[other] == lines[line]) break;
    }
    if (table[slot] == 0) table[slot] = line + 1;
    first[line] = static_cast<std::int64_t>(table[slot] - 1);
  }
  return lines.size();
}

}  // namespace

void bind_text_lines(nb::module_& module) {
  module.def("read_columns", &read_columns, nb::arg("text"), nb::arg("fields"), nb::arg("value"),
             nb::arg("first").noconvert(), nb::arg("counts").noconvert(), nb::arg("third").noconvert(),
             nb::arg("values").noconvert(), nb::arg("numbers").noconvert(),
             "Write three fields of every line, that of its group once; return sizes and the number of a bad line.");
  module.def("first_lines", &first_lines, nb::arg("groups"), nb::arg("text"), nb::arg("out").noconvert(),
             "Write the number of the first line of the same group that is the same; return the number of lines.");
}

}  // namespace ltr
