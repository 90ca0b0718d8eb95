#pragma once

#include <string>
#include <vector>

#include "cli/context.hpp"
#include "cli/show/prepare_words.hpp"
#include "ui/progress.hpp"

// What prepare and its steps show.

namespace remote::cli {

// A transfer's figures for the screen.
ui::Transfer as_transfer(const TransferProgress& progress);

// Shows the progress of servers side by side, from the events of prepare(). Other events are shown as ever.
// `show_output`: also all lines that pip and conda print, and the names of the files that went; then nothing
// may be redrawn (Terminal::set_logging).
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

// Prepares with the progress on the screen, and asks before a large first transfer unless `yes`.
// `show_output`: what the steps print is shown too.
std::vector<PrepareResult> prepare_on_screen(Context& context, const PrepareRequest& request,
                                             bool show_output, bool yes);

// Sends the project to these servers (names or globs; none: all), with its progress on the screen. Throws
// Error unless it went to all of them: then nothing is to be started. Files that are newer on a server and
// were not sent from here are replaced if the user agrees, else an Error too, unless `must` is false.
void send_project(Context& context, const std::vector<std::string>& servers, bool must = true);

// Sends it before a launch to these servers; with `ask`, after a yes to what has changed.
void copy_first(Context& context, const std::vector<std::string>& servers, bool ask);

// Says what came of it; `title` is what a prepared server is: "prepared". Returns the exit code.
int show_prepared(Context& context, const std::vector<PrepareResult>& results, const PrepareRequest& request,
                  const std::string& title);

}  // namespace remote::cli
