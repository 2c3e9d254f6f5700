// Lines of texts whose fields are separated by ASCII white space: three of the fields of every line, as columns.
#include <algorithm>
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

// Write the first field of each run of lines that have it in common, the number of these lines, and the third and the
// `value`-th field of every line. Empty lines are skipped. Return the sizes of the columns, and the number of the first
// line that has not `fields` fields, which ends the columns, or 0.
nb::tuple read_columns(Vector<std::uint8_t> text, std::size_t fields, std::size_t value, OutVector<std::uint8_t> first,
                       OutVector<std::int64_t> counts, OutVector<std::uint8_t> third, OutVector<std::uint8_t> values) {
  const std::size_t size = text.shape(0);
  // an entry and its line feed take no more than a field and the white space behind it, which the last may lack
  require(first.shape(0) > size && third.shape(0) > size && values.shape(0) > size, "room for all entries");
  require(fields > 2 && value < fields, "fields of a line");
  const auto* at = reinterpret_cast<const char*>(text.data());
  const char* const end = at + size;
  Column columns[] = {{view(first)}, {view(third)}, {view(values)}};
  std::size_t runs = 0;
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
      if (number != fields || (fresh && runs == counts.shape(0))) {
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
    }
  }
  return nb::make_tuple(columns[0].size, runs, columns[1].size, columns[2].size, bad);
}

}  // namespace

void bind_text_lines(nb::module_& module) {
  module.def("read_columns", &read_columns, nb::arg("text"), nb::arg("fields"), nb::arg("value"),
             nb::arg("first").noconvert(), nb::arg("counts").noconvert(), nb::arg("third").noconvert(),
             nb::arg("values").noconvert(),
             "Write three fields of every line, that of its group once; return sizes and the number of a bad line.");
}

}  // namespace ltr
