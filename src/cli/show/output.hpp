#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/line_assembler.hpp"
#include "cli/context.hpp"

// Shows the output of commands and jobs.

namespace remote::cli {

// Filters terminal escape sequences in output: passes color (SGR) and cursor movement within the line, and
// makes all others visible, like `less -R`. For one stream; not thread-safe.
class EscapeFilter {
 public:
  // Holds back an incomplete escape sequence until the next piece.
  std::string take(std::string_view piece);
  std::string finish();

 private:
  std::string waiting_;
};

// Shows the output of one server or job: the bytes unchanged if the prefix is empty, otherwise whole lines
// after the prefix; or, with --jsonl, whole lines as events. Not thread-safe.
class OutputScreen {
 public:
  OutputScreen(ui::Terminal& terminal, EventStream& events, OutputSource source)
      : terminal_(terminal), events_(&events), source_(std::move(source)), raw_(false), out_(""), err_("") {}
  OutputScreen(ui::Terminal& terminal, const std::string& prefix)
      : terminal_(terminal), raw_(prefix.empty()), out_(prefix), err_(prefix) {}
  // Filters output to a terminal from now on; output to a file or pipe is not changed.
  void filter_escapes();

  void take(OutputStream stream, std::string_view data);
  // Also shows an incomplete last line.
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

// Throws Error (usage) with --json, which prints a single value: output needs --jsonl. `what`: the rejected
// option or command.
void refuse_output_as_json(const Context& context, const std::string& what);

// Shows the output of jobs as it is written, until they end. For one job, or with only the first rank of a
// launch, shows the bytes unchanged; for several jobs or ranks, whole lines with a colored prefix; with
// --jsonl, each line as an event. Reports on stderr how each ended, and the verdict if request.judge is set.
// On a terminal, output is filtered by EscapeFilter unless `raw`. Returns the exit code of a single job;
// otherwise 0 only if all succeeded. On Ctrl-C, reports that the jobs continue, and throws Interrupted. Sets
// the callbacks of `request`.
int follow_on_screen(Context& context, const std::vector<Job>& jobs, FollowRequest request, bool raw = false);

}  // namespace remote::cli
