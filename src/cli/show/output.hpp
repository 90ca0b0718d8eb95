#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/line_assembler.hpp"
#include "cli/context.hpp"

// The output of commands and of jobs on the screen.

namespace remote::cli {

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

  void take(OutputStream stream, std::string_view data);
  // What came last and had no newline is shown too.
  void finish();

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
};

// Throws Error (usage) with --json, which prints one value: output goes with --jsonl. `what` is refused.
void refuse_output_as_json(const Context& context, const std::string& what);

// Shows the output of jobs as it comes, until they end: one job's bytes as they are, that of several jobs or
// ranks in whole lines with a coloured prefix, and of a launch that is followed by its first rank alone that
// rank's bytes. With --jsonl, each line is an event. Says on stderr how each ended, and the verdict where
// request.judge asks for it. A terminal gets no other escapes of theirs than EscapeFilter's, unless `raw`.
// Returns the exit code: that of the job if it is one, else 0 only if all succeeded. On Ctrl-C says that the
// jobs go on, and throws Interrupted. The callbacks of `request` are set here.
int follow_on_screen(Context& context, const std::vector<Job>& jobs, FollowRequest request, bool raw = false);

}  // namespace remote::cli
