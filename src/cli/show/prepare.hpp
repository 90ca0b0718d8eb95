#pragma once

#include <string>
#include <vector>

#include "cli/context.hpp"
#include "cli/show/prepare_words.hpp"
#include "ui/progress.hpp"

// Output of prepare and its steps.

namespace remote::cli {

// The figures of a transfer, for the screen.
ui::Transfer as_transfer(const TransferProgress& progress);

// Shows the progress of all servers in parallel, from the events of prepare(). Other events are shown as
// usual. `show_output`: also shows all output of pip and conda, and the names of sent files; live rows must
// then be disabled (Terminal::set_logging).
class PrepareScreen {
 public:
  PrepareScreen(Context& context, const std::vector<std::string>& servers, const PrepareRequest& request,
                bool show_output = false);
  ~PrepareScreen();
  PrepareScreen(const PrepareScreen&) = delete;
  PrepareScreen& operator=(const PrepareScreen&) = delete;

 private:
  Context& context_;
  const std::vector<std::string> servers_;
  SameFailures failures_;
  ui::Progress progress_;
};

// Runs prepare and shows the progress; asks before a large first transfer unless `yes`. `show_output`: also
// shows the output of the steps.
std::vector<PrepareResult> prepare_on_screen(Context& context, const PrepareRequest& request,
                                             bool show_output, bool yes);

// Sends the project to these servers (names or globs; none: all), and shows the progress. Throws Error unless
// it was sent to all of them, because then nothing should start. Files that are newer on a server and were
// not sent from here are overwritten if the user agrees; otherwise Error, unless `must` is false.
void send_project(Context& context, const std::vector<std::string>& servers, bool must = true);

// Sends the project to these servers before a launch; with `ask`, only if the user confirms the changes.
void copy_first(Context& context, const std::vector<std::string>& servers, bool ask);

// Shows the results; `title`: the state of a prepared server, "prepared". Returns the exit code.
int show_prepared(Context& context, const std::vector<PrepareResult>& results, const PrepareRequest& request,
                  const std::string& title);

}  // namespace remote::cli
