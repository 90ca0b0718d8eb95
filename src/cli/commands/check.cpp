// `remote check`: whether the servers are fit for a run, and what would mend what is not.

#include "cli/show/check.hpp"

#include <filesystem>
#include <utility>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "base/files.hpp"
#include "base/json.hpp"
#include "cli/options.hpp"
#include "cli/show/bandwidth.hpp"

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
    // What takes long is announced where no line can be redrawn, too.
    const bool announce = !context.terminal.can_redraw() && (request.bandwidth || request.burn_s > 0);
    request.on_progress = [&, announce, last = std::string()](const std::string& step, std::size_t done,
                                                              std::size_t all) mutable {
      line.show(fmt::format("{}: {} of {}", step, done, all));
      if (announce && step != last) {
        context.terminal.notice(step);
        last = step;
      }
    };
  }
  return context.project().check(request);
}

struct CheckArguments {
  CheckRequest request;
  std::string svg;  // empty: no heat map
  bool fix = false;
  bool yes = false;
};

// Before the servers are asked for minutes.
void check_svg(const CheckArguments& arguments) {
  const std::filesystem::path file = arguments.svg;
  if (file.empty()) {
    return;
  }
  if (!arguments.request.bandwidth) {
    throw Error::usage("check", "--svg draws the bandwidth", "give --bandwidth, too");
  }
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (std::error_code problem; !std::filesystem::is_directory(folder, problem)) {
    throw Error::usage("cannot write " + file.string(), "there is no folder " + folder.string(),
                       "make the folder first, or name another file");
  }
}

// Runs what is harmless on the servers, when the user agrees; whether it did.
bool mended(Context& context, const CheckReport& report, bool yes) {
  const std::string fixes = harmless_text(report);
  if (fixes.empty()) {
    context.terminal.notice("nothing was found that this login may mend without harm");
    return false;
  }
  context.terminal.err(fixes);
  if (!yes && !is_yes(context.terminal.ask_stdin("Run this on the servers? [y/N] ", context.cancel))) {
    context.terminal.notice(context.terminal.stdin_is_terminal()
                                ? "nothing was changed"
                                : "nothing was changed; --yes runs it without asking");
    return false;
  }
  context.show(context.project().mend(report));
  return true;
}

int run_check(Context& context, const CheckArguments& arguments) {
  if (arguments.yes && !arguments.fix) {
    throw Error::usage("check", "--yes answers the question of --fix", "give --fix, too");
  }
  check_svg(arguments);
  CheckReport report = checked(context, arguments.request);
  if (arguments.fix && mended(context, report, arguments.yes)) {
    // What was measured for minutes is not changed by that.
    CheckRequest again = arguments.request;
    again.bandwidth = false;
    again.burn_s = 0;
    CheckReport before = std::exchange(report, checked(context, again));
    report.burn = std::move(before.burn);
    if (report.network && before.network) {
      report.network->bandwidth = std::move(before.network->bandwidth);
    }
  }
  if (context.options.json) {
    context.print(to_json(report));
  } else {
    context.terminal.out(check_table(report, context.terminal, context.options.verbose > 0));
    if (arguments.fix) {
      context.terminal.out(root_scripts(report));
    }
  }
  if (!arguments.svg.empty()) {
    if (!report.network) {
      throw Error::usage("cannot draw the bandwidth", "it takes two servers at least",
                         "name more of them with --server, or leave --svg out");
    }
    write_file_atomic(arguments.svg, bandwidth_svg(*report.network));
  }
  return report.ok() ? 0 : 1;
}

}  // namespace

void add_check(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_check);
  add_server_option(command, context, arguments.request.servers);
  command.add_flag("--deep", arguments.request.deep,
                   "Also import torch and compare the libraries that it loads");
  command.add_flag("--bandwidth", arguments.request.bandwidth,
                   "Measure the bandwidth between the servers, one second for each pair");
  add_number_option(command, "--burn", arguments.request.burn_s,
                    "Run all devices under load for this time, with torch", "SECONDS", 1, 3600);
  command.add_option("--svg", arguments.svg, "Write the bandwidth as a heat map")->type_name("FILE");
  command.add_flag(
      "--fix", arguments.fix,
      "Run the harmless fixes that need no root, after asking; print the rest as a script for each "
      "server");
  command.add_flag("--yes", arguments.yes, "Do not ask (with --fix)");
}

}  // namespace remote::cli
