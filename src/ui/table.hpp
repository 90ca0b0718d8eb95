#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ui/terminal.hpp"

namespace remote::ui {

// Text in one style.
struct Cell {
  Cell(std::string cell_text = {}, Style cell_style = Style::plain)  // NOLINT: a text is a cell
      : text(std::move(cell_text)), style(cell_style) {}
  Cell(const char* cell_text) : text(cell_text) {}  // NOLINT: a text is a cell
  std::string text;
  Style style = Style::plain;
  std::string brief{};  // if not empty, stands where the column is too narrow for the text
};

struct Column {
  Column(std::string column_title, bool numbers = false)  // NOLINT: a title is a column
      : title(std::move(column_title)), right_aligned(numbers) {}
  Column(const char* column_title) : title(column_title) {}  // NOLINT: a title is a column
  // Where the terminal is too narrow, it is cut before others are, and left out before they say nothing.
  Column yielding() && {
    gives_way = true;
    return std::move(*this);
  }
  // Where it is cut, it keeps its beginning and its end.
  Column elided() && {
    keeps_end = true;
    return std::move(*this);
  }
  // It is cut only after all others.
  Column whole() && {
    stays_whole = true;
    return std::move(*this);
  }
  // It is never cut, and only its cells with a short form are shortened: a part of a key names nothing.
  Column uncut() && {
    is_fixed = true;
    return std::move(*this);
  }
  // It goes before one that yields and keeps its end would be hard to read.
  Column dispensable() && {
    can_go = true;
    return std::move(*this);
  }
  std::string title;
  bool right_aligned = false;
  bool gives_way = false;
  bool stays_whole = false;
  bool is_fixed = false;
  bool keeps_end = false;
  bool can_go = false;
};

// Rows under a header line, in columns as wide as their widest cell, two spaces between them, no blanks at
// the end of a line. Every row is one line: control characters in cells are made visible.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // Cells that are missing at the end are empty; there must not be more than columns.
  void add(std::vector<Cell> row);
  bool empty() const { return rows_.empty(); }

  // For stdout of this terminal: where it is one, coloured and cut to its width (the widest column gives way,
  // with "…"); where it is a pipe or file, whole.
  std::string text(const Terminal& terminal) const;
  // The same with the width given (nullopt: whole) and without colours.
  std::string text(std::optional<std::size_t> width) const;

 private:
  template <typename Paint>
  std::string render(std::optional<std::size_t> width, const Paint& paint) const;
  std::vector<std::size_t> widths(std::optional<std::size_t> width) const;
  std::vector<std::size_t> natural(bool brief) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace remote::ui
