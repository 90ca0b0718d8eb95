#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ui/terminal.hpp"

namespace remote::ui {

struct Cell {
  Cell(std::string cell_text = {}, Style cell_style = Style::plain)  // NOLINT: a text is a cell
      : text(std::move(cell_text)), style(cell_style) {}
  Cell(const char* cell_text) : text(cell_text) {}  // NOLINT: a text is a cell
  std::string text;
  Style style = Style::plain;
  std::string brief{};  // if not empty, shown if the column is too narrow for the text
};

struct Column {
  Column(std::string column_title, bool numbers = false)  // NOLINT: a title is a column
      : title(std::move(column_title)), right_aligned(numbers) {}
  Column(const char* column_title) : title(column_title) {}  // NOLINT: a title is a column
  // If the terminal is too narrow, this column is cut before others, and dropped before they become useless.
  Column yielding() && {
    gives_way = true;
    return std::move(*this);
  }
  // If it is cut, it keeps its beginning and its end.
  Column elided() && {
    keeps_end = true;
    return std::move(*this);
  }
  // It is cut only after all others.
  Column whole() && {
    stays_whole = true;
    return std::move(*this);
  }
  // It is never cut; only cells with a short form are shortened. Use it for keys, because part of a key
  // identifies nothing.
  Column uncut() && {
    is_fixed = true;
    return std::move(*this);
  }
  // It is dropped before a yielding column that keeps its end becomes hard to read.
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

// Rows below a header line. Each column is as wide as its widest cell, with two spaces between columns and
// none at the end of a line. Every row is a single line, so control characters in cells are made visible.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // Missing cells at the end are empty. There must not be more cells than columns.
  void add(std::vector<Cell> row);
  bool empty() const { return rows_.empty(); }

  // Formats the table for this terminal's stdout: on a terminal, with colors and cut to its width (the widest
  // column is cut, with "…"); for a pipe or file, in full.
  std::string text(const Terminal& terminal) const;
  // Formats the table for this width (nullopt: in full), without colors.
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
