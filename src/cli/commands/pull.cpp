// `remote pull`: copies what a launch wrote to results/KEY.

#include "cli/commands/pull.hpp"

#include <optional>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/show/events.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/prepare_words.hpp"
#include "ui/progress.hpp"

namespace remote::cli {
namespace {

struct PullArguments {
  std::string launch = "last";
};

int run_pull(Context& context, const PullArguments& arguments) {
  return pull_results(context, arguments.launch);
}

void show(Context& context, const Results& results) {
  const std::string folder = results.folder.lexically_proximate(current_folder()).string();
  for (const std::string& warning : results.warnings) {
    context.terminal.warning(visible_line(warning));
  }
  for (const std::string& name : results.newer) {
    context.terminal.warning(fmt::format("{}: not changed, it is newer here", visible_line(name)));
  }
  context.show(results.errors);
  if (!results.waiting.empty()) {
    context.terminal.notice(
        fmt::format("not complete yet, not copied: {}", join(first_lines(results.waiting, 5), ", ")));
  }
  if (!results.files.empty()) {
    context.terminal.notice(fmt::format("{} ({}) in {}", counted(results.files.size(), "file"),
                                        size_text(results.bytes), folder));
  } else if (results.errors.empty()) {
    context.terminal.notice(results.found == 0 ? "the launch has written nothing to its outputs"
                                               : "already up to date: " + folder);
  }
}

}  // namespace

int pull_results(Context& context, const std::string& launch) {
  ResultsRequest request{.launch = launch};
  std::optional<ui::Progress> progress;
  if (context.terminal.stderr_is_terminal() && !context.options.quiet) {
    progress.emplace(context.terminal, std::vector<std::string>{"results"}, false);
    progress->step(0, "pull");
    request.on_progress = [&progress](const TransferProgress& now) {
      progress->transfer(0, as_transfer(now));
    };
  }
  Results results;
  try {
    results = context.project().pull_results(request);
  } catch (const Interrupted&) {
    progress.reset();
    context.terminal.notice(fmt::format("remote pull {} continues where this one stopped", launch));
    throw;
  }
  progress.reset();
  show(context, results);
  if (context.options.json) {
    const nlohmann::ordered_json value = {{"to", results.folder.string()}, {"files", results.files},
                                          {"newer_here", results.newer},   {"incomplete", results.waiting},
                                          {"bytes", results.bytes},        {"found", results.found}};
    context.print(value);
  }
  return results.errors.empty() ? 0 : 1;
}

void add_pull(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_pull);
  CLI::Option* option =
      command.add_option("launch", arguments.launch, "Key of any of its jobs, its name, or last (default)");
  option->type_name("KEY");
  context.completers[option] = NameKind::launches;
}

}  // namespace remote::cli
