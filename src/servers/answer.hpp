#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <remote/error.hpp>

#include "base/clock.hpp"
#include "base/strings.hpp"

// What the scripts of src/server answer: lines on stdout that begin with "@remote1 " (docs/protocol.md). It
// is foreign text: every word is checked, nothing is guessed, and what is not understood is an Error that
// shows the line. A half-understood answer is worse than none.

namespace remote::servers {

inline constexpr std::string_view answer_mark = "@remote1 ";

// One line of an answer, taken word by word. Words are divided by single blanks. All functions throw Error.
class AnswerLine {
 public:
  // `line` begins with the mark, has no line end, and outlives this.
  explicit AnswerLine(std::string_view line);

  // Its first word, which says what the others mean.
  std::string_view kind() const { return kind_; }
  bool more() const { return !rest_.empty(); }
  std::string_view word();
  // All that is left, also nothing.
  std::string_view rest() { return std::exchange(rest_, {}); }
  // Nothing may be left.
  void end() const;

  template <typename Number>
  Number number(Number low, Number high = std::numeric_limits<Number>::max()) {
    return number_in(word(), low, high);
  }
  // The number that a part of a word is.
  template <typename Number>
  Number number_in(std::string_view text, Number low,
                   Number high = std::numeric_limits<Number>::max()) const {
    const std::optional<Number> value = parse_number<Number>(text);
    if (!value || !(*value >= low && *value <= high)) {  // also for what is not a number (NaN)
      refuse("a number is wrong");
    }
    return *value;
  }
  // Since the epoch: in seconds for an Instant, in milliseconds for an ExactInstant.
  template <typename Point>
  Point instant_in(std::string_view text) const {
    using Unit = typename Point::duration;
    return Point(Unit(number_in<std::int64_t>(text, 0, Unit(year_10000.time_since_epoch()).count())));
  }
  // The id of one process, never of a group.
  int pid() { return number<int>(1); }
  // A word of letters, digits and these marks: it may become part of a message or of a variable.
  std::string name(std::string_view marks = "._-");
  // What stands beside `word` in a table; throws `otherwise` when it does not stand there.
  template <typename Value>
  Value choice(std::string_view word, std::initializer_list<std::pair<std::string_view, Value>> table,
               const char* otherwise) const {
    for (const auto& [name, value] : table) {
      if (name == word) {
        return value;
      }
    }
    refuse(otherwise);
  }

  // Throws the Error for a line that is not understood.
  [[noreturn]] void refuse(const char* why) const;
  [[noreturn]] void refuse_kind() const { refuse("an unknown word"); }

 private:
  std::string_view line_;
  std::string_view rest_;
  std::string_view kind_;
};

// The script said that it does nothing of what it was asked for: "@remote1 error TEXT".
class Refused : public Error {
 public:
  explicit Refused(const std::string& reason)
      : Error(Error("the server refused", reason).mended_by(Remedy::check_server)) {}
};

// Throws Refused where this, which came in place of a command's own output, has the line of a refusal.
void check_refusal(std::string_view text);

// Reads a script's stdout as it comes. What is wrong with it is kept until finish(), so that a script which
// changes something can do it to its end.
class AnswerReader {
 public:
  using Take = std::function<void(AnswerLine&)>;
  using Other = std::function<void(std::string_view)>;

  // `take` gets the lines of the answer; it throws Error for one that it does not understand. `other` gets
  // the lines of other programs (pip, conda, rsync, a login shell), which may also end with '\r'.
  explicit AnswerReader(Take take, Other other = {});

  void add(std::string_view data);
  // Whether "@remote1 end" has come.
  bool closed() const { return closed_; }
  // All has come. Throws Error when something was wrong: Refused for a refusal that no other line precedes.
  void finish() const;
  // The same for an answer that must end with "@remote1 end". `ended` says how the script ended, in case that
  // is missing; may be "".
  void finish_with_closing_line(const std::string& ended = {}) const;

 private:
  void take_line(std::string_view line);

  Take take_;
  Other other_;
  LineCutter lines_{answer_mark};
  std::size_t count_ = 0;
  bool closed_ = false;
  std::optional<Error> failure_;
  std::optional<Refused> refusal_;
};

}  // namespace remote::servers
