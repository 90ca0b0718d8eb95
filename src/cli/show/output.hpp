#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/context.hpp"
#include "ui/lines.hpp"

// The output of commands and of jobs on the screen.

namespace remote::cli {

// Shows what one server or job writes: its bytes as they are where the prefix is empty, else whole lines
// behind the prefix. One thread at a time.
class OutputScreen {
 public:
  OutputScreen(ui::Terminal& terminal, const std::string& prefix)
      : terminal_(terminal), raw_(prefix.empty()), out_(prefix), err_(prefix) {}

  void take(OutputStream stream, std::string_view data);
  // What came last and had no newline is shown too.
  void finish();
  // Whether the cursor stands behind a line that has not ended.
  bool within_line() const { return last_ != '\n'; }

 private:
  void print(OutputStream stream, std::string_view text);

  ui::Terminal& terminal_;
  bool raw_;
  ui::LineAssembler out_;
  ui::LineAssembler err_;
  char last_ = '\n';
};

// Shows the output of jobs as it comes, until they end: one job's bytes as they are, several jobs' in whole
// lines with a coloured prefix, and of a launch that is followed by its first rank alone that rank's bytes.
// Says on stderr how each ended, and the verdict where request.judge asks for it. Returns the exit code: that
// of the job if it is one, else 0 only if all succeeded. On Ctrl-C says that the jobs go on, and throws
// Interrupted. The callbacks of `request` are set here.
int follow_on_screen(Context& context, const std::vector<Job>& jobs, FollowRequest request);

}  // namespace remote::cli
