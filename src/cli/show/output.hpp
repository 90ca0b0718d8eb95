#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/context.hpp"

// The output of commands and of jobs on the screen.

namespace remote::cli {

// Makes whole lines out of pieces of a stream, for output of several sources on one screen: each line gets a
// prefix, a progress bar's carriage returns are reduced to the last state (and to its state every
// `bar_every`, for a bar may take an hour), and a line longer than `max_line` is broken so that memory stays
// bounded. Bytes are passed as they are otherwise. One thread.
class LineAssembler {
 public:
  explicit LineAssembler(std::string prefix, std::size_t max_line = std::size_t{64} << 10U,
                         std::chrono::milliseconds bar_every = std::chrono::seconds(5))
      : prefix_(std::move(prefix)), max_line_(max_line), bar_every_(bar_every) {}

  // Lines that bring a label of their own ("[3] ", as an agent of torchrun puts before those of its ranks)
  // get no prefix.
  void keep_labels() { keeps_labels_ = true; }

  // Takes a piece; returns the lines that are complete now, prefixed, each with its newline, and perhaps the
  // state of a progress bar.
  std::string take(std::string_view piece);
  // What is left at the end of the stream, with a newline; "" when nothing is.
  std::string finish();

 private:
  void emit(std::string& out);

  std::string prefix_;
  bool keeps_labels_ = false;
  std::size_t max_line_;
  std::chrono::milliseconds bar_every_;
  std::chrono::steady_clock::time_point shown_ = std::chrono::steady_clock::now();
  std::string line_;
  bool bar_ = false;             // the line was begun anew behind a '\r'
  std::string shown_state_;      // of the bar
  bool return_pending_ = false;  // a '\r' was seen: the next character but '\n' starts the line anew
};

// Takes out of an output what does more to a terminal than show text: color (SGR) and movement of the cursor
// within its line pass, all else is made visible, as `less -R` does. One stream, one thread.
class EscapeFilter {
 public:
  // An escape sequence that is not complete yet waits for the next piece.
  std::string take(std::string_view piece);
  std::string finish();

 private:
  std::string waiting_;
};

// Shows what one server or job writes: its bytes as they are where the prefix is empty, else whole lines
// behind the prefix; or whole lines as events of --jsonl. One thread at a time.
class OutputScreen {
 public:
  OutputScreen(ui::Terminal& terminal, EventStream& events, OutputSource source)
      : terminal_(terminal), events_(&events), source_(std::move(source)), raw_(false), out_(""), err_("") {}
  OutputScreen(ui::Terminal& terminal, const std::string& prefix)
      : terminal_(terminal), raw_(prefix.empty()), out_(prefix), err_(prefix) {}
  // What a terminal gets is filtered from now on; output into a file or pipe stays as it is.
  void filter_escapes();

  void keep_labels() {
    out_.keep_labels();
    err_.keep_labels();
  }
  void take(OutputStream stream, std::string_view data);
  // What came last and had no newline is shown too.
  void finish();
  // Whether the cursor stands behind a line that has not ended.
  bool within_line() const { return last_ != '\n'; }

 private:
  void print(OutputStream stream, std::string_view text);

  ui::Terminal& terminal_;
  EventStream* events_ = nullptr;  // the Context's
  OutputSource source_;
  bool raw_;
  LineAssembler out_;
  LineAssembler err_;
  std::optional<EscapeFilter> out_filter_;
  std::optional<EscapeFilter> err_filter_;
  char last_ = '\n';
};

// Throws Error (usage) with --json, which prints one value: output goes with --jsonl. `what` is refused.
void refuse_output_as_json(const Context& context, const std::string& what);

// Shows the output of jobs as it comes, until they end: one job's bytes as they are, several jobs' in whole
// lines with a coloured prefix, and of a launch that is followed by its first rank alone that rank's bytes.
// With --jsonl, each line is an event. Says on stderr how each ended, and the verdict where request.judge
// asks for it. A terminal gets no other escapes of theirs than EscapeFilter's, unless `raw`. Returns the exit
// code: that of the job if it is one, else 0 only if all succeeded. On Ctrl-C says that the jobs go on, and
// throws Interrupted. The callbacks of `request` are set here.
int follow_on_screen(Context& context, const std::vector<Job>& jobs, FollowRequest request, bool raw = false);

}  // namespace remote::cli
