#include "ui/table.hpp"

#include <algorithm>
#include <utility>

#include "base/strings.hpp"

namespace remote::ui {
namespace {

constexpr std::size_t gap = 2;          // spaces between columns
constexpr std::size_t narrowest = 6;    // a column is not cut below this
constexpr std::size_t still_said = 10;  // nor one that gives way, until all must

// The text in at most so many columns, with "…" in the middle: "python train.py … --epochs 10".
std::string elide(std::string_view text, std::size_t width) {
  constexpr std::size_t worth_it = 15;  // of less, an end says nothing
  if (display_width(text) <= width || width < worth_it) {
    return shorten(text, width);
  }
  const auto inside = [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
  };  // of a character
  std::size_t at = text.size();
  for (std::size_t next = at; next-- > 0 && display_width(text.substr(next)) <= width / 3;) {
    at = inside(text[next]) ? at : next;
  }
  const std::string_view end = text.substr(at);
  return shorten(text, width - display_width(end)) + std::string(end);
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<Cell> row) {
  row.resize(columns_.size());
  for (Cell& cell : row) {
    cell.text = visible_line(cell.text);
  }
  rows_.push_back(std::move(row));
}

std::vector<std::size_t> Table::widths(std::optional<std::size_t> width) const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t widest = display_width(columns_[i].title);
    for (const auto& row : rows_) {
      widest = std::max(widest, display_width(row[i].text));
    }
    result.push_back(widest);
  }
  if (!width || result.empty()) {
    return result;
  }
  std::size_t total = gap * (result.size() - 1);
  for (const std::size_t one : result) {
    total += one;
  }
  for (std::size_t i = columns_.size(); i-- > 0 && total > *width;) {
    if (columns_[i].gives_way) {
      const std::size_t floor = std::max(still_said, display_width(columns_[i].title));
      const std::size_t cut = std::min(total - *width, result[i] - std::min(result[i], floor));
      result[i] -= cut;
      total -= cut;
    }
  }
  // The widest gives way first, down to the next widest, and so on.
  while (total > *width) {
    auto widest = std::max_element(result.begin(), result.end());
    const std::size_t floor =
        std::max(narrowest, display_width(columns_[static_cast<std::size_t>(widest - result.begin())].title));
    if (*widest <= floor) {
      break;  // a line that wraps is better than one that says nothing
    }
    std::size_t second = 0;
    for (auto it = result.begin(); it != result.end(); ++it) {
      if (it != widest) {
        second = std::max(second, *it);
      }
    }
    const std::size_t lowest = std::max(floor, std::min(second, *widest - 1));
    const std::size_t cut = std::min(total - *width, *widest - lowest);
    *widest -= cut;
    total -= cut;
  }
  return result;
}

template <typename Paint>
std::string Table::render(std::optional<std::size_t> width, const Paint& paint) const {
  const std::vector<std::size_t> cells = widths(width);
  std::string out;
  const auto line = [&](const auto& cell_of) {
    std::size_t blanks = 0;  // due before the next text, so that no line ends with blanks
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Cell& cell = cell_of(i);
      const std::string shown =
          columns_[i].keeps_end ? elide(cell.text, cells[i]) : shorten(cell.text, cells[i]);
      const std::size_t used = display_width(shown);
      const std::size_t padding = cells[i] > used ? cells[i] - used : 0;
      if (columns_[i].right_aligned) {
        blanks += padding;
      }
      if (!shown.empty()) {
        out.append(blanks, ' ');
        out += paint(cell.style, shown);
        blanks = 0;
      }
      blanks += gap + (columns_[i].right_aligned ? 0 : padding);
    }
    out += '\n';
  };
  std::vector<Cell> header;
  for (const Column& column : columns_) {
    header.emplace_back(column.title, Style::bold);
  }
  line([&](std::size_t i) -> const Cell& { return header[i]; });
  for (const auto& row : rows_) {
    line([&](std::size_t i) -> const Cell& { return row[i]; });
  }
  return out;
}

std::string Table::text(const Terminal& terminal) const {
  std::optional<std::size_t> width;
  if (terminal.stdout_is_terminal()) {
    width = terminal.columns();
  }
  return render(width,
                [&](Style style, const std::string& shown) { return terminal.paint_out(style, shown); });
}

std::string Table::text(std::optional<std::size_t> width) const {
  return render(width, [](Style, const std::string& shown) { return shown; });
}

}  // namespace remote::ui
