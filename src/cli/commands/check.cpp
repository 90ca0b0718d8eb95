// `remote check`: whether the servers are fit for a run, and what would mend what is not.

#include "cli/show/check.hpp"

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "base/json.hpp"
#include "cli/options.hpp"

namespace remote::cli {
namespace {

// A line on stderr's terminal that says what it is at, and is gone with the object.
class LiveLine {
 public:
  explicit LiveLine(ui::Terminal& terminal) : terminal_(terminal) {}
  ~LiveLine() {
    if (shown_) {
      terminal_.set_live("");
    }
  }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  void show(const std::string& text) {
    if (terminal_.can_redraw()) {
      shown_ = true;
      terminal_.set_live(ui::shorten(text, terminal_.columns() - 1));
    }
  }

 private:
  ui::Terminal& terminal_;
  bool shown_ = false;
};

CheckReport checked(Context& context, CheckRequest request) {
  LiveLine line(context.terminal);
  if (!context.options.quiet) {
    request.on_progress = [&line](const std::string& step, std::size_t done, std::size_t all) {
      line.show(fmt::format("{}: {} of {}", step, done, all));
    };
  }
  return context.project().check(request);
}

int run(Context& context, const CheckRequest& request) {
  const CheckReport report = checked(context, request);
  if (context.options.json) {
    context.print(to_json(report));
  } else {
    context.terminal.out(check_table(report, context.terminal, context.options.verbose > 0));
  }
  return report.ok() ? 0 : 1;
}

}  // namespace

void add_check(CLI::App& app, Context& context) {
  const auto [command, request] = add_command(
      app, context, "check", "Say whether the servers are fit for a run, and what mends them", run);
  add_server_option(command, context, request.servers);
}

}  // namespace remote::cli
