// `remote check`: checks whether the servers are ready for a run, and shows fixes for problems.

#include "cli/show/check.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "base/files.hpp"
#include "base/json.hpp"
#include "cli/options.hpp"
#include "cli/show/bandwidth.hpp"

namespace remote::cli {
namespace {

// Shows findings and the current step during the check: on a terminal as live rows that are removed by the
// destructor, otherwise as permanent lines.
class News {
 public:
  News(Context& context, bool announce) : context_(context), announce_(announce), usual_(context.on_event) {
    context.on_event = [this](const Event& event) {
      if (const auto* warned = std::get_if<CheckWarned>(&event)) {
        add(finding_line(warned->servers.front(), warned->finding));  // once per server
      } else {
        usual_(event);
      }
    };
  }
  ~News() {
    context_.on_event = usual_;
    if (shown_) {
      context_.terminal.set_live("");
    }
  }
  News(const News&) = delete;
  News& operator=(const News&) = delete;

  void step(const std::string& name, std::size_t done, std::size_t all) {
    if (context_.options.quiet) {
      return;
    }
    // Long steps are announced even if lines cannot be redrawn.
    if (!context_.terminal.can_redraw() && announce_ && name != step_) {
      context_.terminal.notice(name);
    }
    step_ = name;
    last_row_ = fmt::format("{}: {} of {}", name, done, all);
    draw();
  }

 private:
  void add(const std::string& line) {
    if (!context_.terminal.can_redraw()) {
      context_.terminal.notice(line);
    } else if (!context_.options.quiet) {
      rows_.push_back(line);
      draw();
    }
  }

  // Shows as many of the newest rows as fit.
  void draw() {
    ui::Terminal& terminal = context_.terminal;
    if (!terminal.can_redraw()) {
      return;
    }
    const std::size_t room = std::min(rows_.size(), std::max<std::size_t>(terminal.rows(), 4) - 2);
    std::string text;
    for (std::size_t i = rows_.size() - room; i < rows_.size(); ++i) {
      text += ui::shorten(rows_[i], terminal.columns() - 1) + "\n";
    }
    shown_ = true;
    terminal.set_live(text + ui::shorten(last_row_, terminal.columns() - 1));
  }

  Context& context_;
  const bool announce_;
  const std::function<void(const Event&)> usual_;
  std::vector<std::string> rows_;
  std::string step_;
  std::string last_row_;
  bool shown_ = false;
};

CheckReport checked(Context& context, CheckRequest request) {
  context.when_interrupted = "interrupted: the check is incomplete; its processes on the servers end";
  News news(context, request.bandwidth || request.burn.count() > 0);
  request.on_progress = [&](const std::string& step, std::size_t done, std::size_t all) {
    news.step(step, done, all);
  };
  return context.project().check(request);
}

struct CheckArguments {
  CheckRequest request;
  std::string svg;  // "": no heat map
  bool fix = false;
  bool yes = false;
  int burn_s = 0;
};

// Runs before the check, which may take minutes.
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

// Runs the harmless fixes on the servers if the user agrees; returns whether it did.
bool mended(Context& context, const CheckReport& report, bool yes) {
  const std::string fixes = harmless_text(report);
  if (fixes.empty()) {
    context.terminal.notice("nothing was found that this login can repair safely");
    return false;
  }
  context.terminal.err(fixes);
  if (!yes && context.ask_yes_no("Run this on the servers?", Answer::no, true) != Answer::yes) {
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
  CheckRequest request = arguments.request;
  request.burn = std::chrono::seconds(arguments.burn_s);
  CheckReport report = checked(context, request);
  if (arguments.fix && mended(context, report, arguments.yes)) {
    // Keeps the results of long measurements, which the fixes do not change.
    request.bandwidth = false;
    request.burn = {};
    CheckReport before = std::exchange(report, checked(context, request));
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
      throw Error::usage("cannot draw the bandwidth", "it needs at least two servers",
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
  context.completers[command
                         .add_option("--well", arguments.request.well, "Excluded servers that are well again")
                         ->type_name("NAME")
                         ->delimiter(',')
                         ->allow_extra_args(false)] = NameKind::servers;
  command.add_flag("--deep", arguments.request.deep,
                   "Also import torch and compare the libraries that it loads");
  command.add_flag("--bandwidth", arguments.request.bandwidth,
                   "Measure the bandwidth between the servers, one second for each pair");
  add_number_option(command, "--burn", arguments.burn_s,
                    "Run all devices under load for this time, with torch", "SECONDS", 1, 3600);
  command.add_option("--svg", arguments.svg, "Write the bandwidth as a heat map")->type_name("FILE");
  command.add_flag(
      "--fix", arguments.fix,
      "Run the harmless fixes that need no root, after asking; print the rest as a script for each "
      "server");
  command.add_flag("--yes", arguments.yes, "Do not ask (with --fix)");
}

}  // namespace remote::cli
