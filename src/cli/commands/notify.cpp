// `remote notify --test`: tries `notify:` of configs.yaml, from the first server.

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/show/waiting.hpp"

namespace remote::cli {
namespace {

struct NotifyArguments {
  bool test = false;
};

int run_notify(Context& context, const NotifyArguments& /*arguments*/) {
  NotifyTrial trial;
  {
    const Waiting waiting(context.terminal, "for the answer");
    trial = context.project().try_notify();
  }
  if (context.options.json) {
    const nlohmann::ordered_json value = {
        {"server", trial.server}, {"sent", trial.sent}, {"answer", trial.answer}};
    context.print(value);
  } else {
    context.terminal.out(fmt::format("{} from {}: {}\n", trial.sent ? "sent" : "not sent", trial.server,
                                     visible_line(trial.answer)));
  }
  return trial.sent ? 0 : 1;
}

}  // namespace

void add_notify(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_notify);
  command.add_flag("--test", arguments.test, "Send a test from the first server")->required();
}

}  // namespace remote::cli
