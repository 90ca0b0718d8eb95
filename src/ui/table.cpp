#include "ui/table.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/strings.hpp"

namespace remote::ui {
namespace {

constexpr std::size_t gap = 2;          // spaces between columns
constexpr std::size_t narrowest = 6;    // columns are not cut below this
constexpr std::size_t still_said = 10;  // nor is a column that gives way, until all must be
constexpr std::size_t readable =
    28;  // the minimum for a column that keeps its end, while others can be cut further
constexpr std::size_t enough = 18;  // its minimum while other columns can be dropped

// Shortens the text to at most this many columns, with "…" in the middle: "python train.py … --epochs 10".
std::string elide(std::string_view text, std::size_t width) {
  constexpr std::size_t worth_it = 15;  // below this, showing the end is useless
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

// Fits the columns of a table into a width.
class Fitting {
 public:
  // `natural` are the widths of the widest cells; `brief` those with short forms, for cells that have one.
  Fitting(const std::vector<Column>& columns, std::vector<std::size_t> natural,
          std::vector<std::size_t> brief, std::size_t width)
      : columns_(columns),
        natural_(std::move(natural)),
        brief_(std::move(brief)),
        widths_(natural_),
        width_(width) {
    total_ = std::accumulate(widths_.begin(), widths_.end(), gap * (widths_.size() - 1));
  }

  // The width of each column; 0 if it is dropped.
  std::vector<std::size_t> fitted() {
    cut_yielding(readable);
    shorten_cells();
    const std::optional<std::size_t> kept = hide_yielding();
    cut_yielding(enough);
    hide_dispensable();
    cut_yielding(still_said);
    cut_widest(false);
    if (kept && total_ > width_) {
      hide(*kept);
    }
    cut_widest(true);
    widen_yielding();
    return std::move(widths_);
  }

 private:
  // Narrows the column as much as necessary, but not below `lowest`.
  void cut(std::size_t i, std::size_t lowest) {
    const std::size_t by = std::min(total_ - width_, widths_[i] - std::min(widths_[i], lowest));
    widths_[i] -= by;
    total_ -= by;
  }

  void hide(std::size_t i) {
    total_ -= widths_[i] + gap;
    widths_[i] = 0;
  }

  // First cuts the columns that give way, from the right. `lowest` is the minimum for those that keep their
  // end.
  void cut_yielding(std::size_t lowest) {
    for (std::size_t i = columns_.size(); i-- > 0 && total_ > width_;) {
      if (columns_[i].gives_way && widths_[i] > 0) {
        cut(i, std::max(columns_[i].keeps_end ? lowest : still_said, display_width(columns_[i].title)));
      }
    }
  }

  void shorten_cells() {
    for (std::size_t i = columns_.size(); i-- > 0 && total_ > width_;) {
      total_ -= widths_[i] - std::min(widths_[i], brief_[i]);
      widths_[i] = std::min(widths_[i], brief_[i]);
    }
  }

  // While the table is too wide, drops columns that give way, except the last one, which it returns.
  std::optional<std::size_t> hide_yielding() {
    std::optional<std::size_t> last;
    for (std::size_t i = 0; i < columns_.size() && total_ > width_; ++i) {
      if (columns_[i].gives_way && last) {
        hide(*last);
      }
      last = columns_[i].gives_way ? i : last;
    }
    return last;
  }

  void hide_dispensable() {
    for (std::size_t i = 0; i < columns_.size() && total_ > width_; ++i) {
      if (columns_[i].can_go) {
        hide(i);
      }
    }
  }

  // These columns use the remaining space.
  void widen_yielding() {
    for (std::size_t i = columns_.size(); i-- > 0 && total_ < width_;) {
      if (columns_[i].gives_way && widths_[i] > 0) {
        const std::size_t more = std::min(width_ - total_, natural_[i] - widths_[i]);
        widths_[i] += more;
        total_ += more;
      }
    }
  }

  // Cuts the widest column to the width of the next one, and so on. `whole_too`: includes columns that should
  // stay whole as long as possible.
  void cut_widest(bool whole_too) {
    while (total_ > width_) {
      std::optional<std::size_t> widest;
      std::size_t second = 0;
      for (std::size_t i = 0; i < widths_.size(); ++i) {
        if (columns_[i].is_fixed || (columns_[i].stays_whole && !whole_too)) {
          continue;
        }
        if (!widest || widths_[i] > widths_[*widest]) {
          second = widest ? widths_[*widest] : 0;
          widest = i;
        } else {
          second = std::max(second, widths_[i]);
        }
      }
      const std::size_t floor =
          widest ? std::max(narrowest, display_width(columns_[*widest].title)) : narrowest;
      if (!widest || widths_[*widest] <= floor) {
        break;  // a wrapped line is better than one without information
      }
      cut(*widest, std::max(floor, std::min(second, widths_[*widest] - 1)));
    }
  }

  const std::vector<Column>& columns_;
  const std::vector<std::size_t> natural_;
  const std::vector<std::size_t> brief_;
  std::vector<std::size_t> widths_;
  const std::size_t width_;
  std::size_t total_ = 0;
};

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<Cell> row) {
  row.resize(columns_.size());
  for (Cell& cell : row) {
    cell.text = visible_line(cell.text);
    cell.brief = visible_line(cell.brief);
  }
  rows_.push_back(std::move(row));
}

std::vector<std::size_t> Table::natural(bool brief) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t widest = display_width(columns_[i].title);
    for (const auto& row : rows_) {
      widest = std::max(widest, display_width(brief && !row[i].brief.empty() ? row[i].brief : row[i].text));
    }
    widths.push_back(widest);
  }
  return widths;
}

std::vector<std::size_t> Table::widths(std::optional<std::size_t> width) const {
  return width && !columns_.empty() ? Fitting(columns_, natural(false), natural(true), *width).fitted()
                                    : natural(false);
}

template <typename Paint>
std::string Table::render(std::optional<std::size_t> width, const Paint& paint) const {
  const std::vector<std::size_t> cells = widths(width);
  std::string out;
  const auto line = [&](const auto& cell_of) {
    std::size_t blanks = 0;  // spaces are added only before the next text, so that no line ends with spaces
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (cells[i] == 0) {
        continue;  // the column is hidden
      }
      const Cell& cell = cell_of(i);
      std::string shown = cell.text;
      std::size_t used = display_width(shown);
      if (used > cells[i]) {
        shown = columns_[i].keeps_end ? elide(cell.text, cells[i])
                                      : shorten(cell.brief.empty() ? cell.text : cell.brief, cells[i]);
        used = display_width(shown);
      }
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
