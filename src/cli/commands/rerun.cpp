// `remote rerun` and `diff`: start a recorded launch again, and show differences between launches.

#include <algorithm>
#include <iterator>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/history.hpp>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "cli/commands/ends.hpp"
#include "cli/commands/launch_options.hpp"
#include "cli/options.hpp"
#include "cli/show/differences.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/plan.hpp"
#include "jobs/job_json.hpp"
#include "ui/table.hpp"

namespace remote::cli {
namespace {

struct RerunArguments {
  RerunRequest request;
  std::vector<std::string> words;
  EnvOptions env;
  std::string code;
  bool yes = false;
  bool dry_run = false;
  std::optional<bool> follow;
};

// Whether files on the servers had been changed there, or sent by another sender.
bool had_other_code(const PastLaunch& launch) {
  return std::ranges::any_of(launch.beginning.servers, [](const ServerSetup& server) {
    return std::ranges::any_of(server.facts, [](const auto& fact) { return fact.first == "changed there"; });
  });
}

std::string why_gone(CodeKept why, const PastLaunch& launch) {
  switch (why) {
    case CodeKept::kept:
      return "";
    case CodeKept::no_git:
      return "no commit of git is known for it";
    case CodeKept::no_commit:
      return fmt::format("git no longer has commit {}; git fetch may bring it", launch.commit.substr(0, 12));
    case CodeKept::no_patch:
      return fmt::format("it differed from commit {}, and the patch was not kept",
                         launch.commit.substr(0, 12));
    case CodeKept::not_sent:
      return had_other_code(launch) ? "the servers had different code than this machine"
                                    : "the servers had older code than this machine";
    case CodeKept::submodules:
      return "it has submodules, and they were different then";
  }
  return "";
}

// What cannot be restored, one sentence each.
std::vector<std::string> losses_of(const Rerun& again, bool code_of_now) {
  std::vector<std::string> losses;
  const PastLaunch& launch = again.launch;
  if (again.code == Rerun::Code::gone && !code_of_now) {
    losses.push_back(
        fmt::format("its code is gone ({}): it would run the current code", why_gone(again.why, launch)));
    losses.push_back(again.changed.empty()
                         ? "it is unknown which files differ here now: the list of its files was not kept"
                         : fmt::format("the current code differs in {}: {} (by size and time)",
                                       counted(again.changed.size(), "file"),
                                       join(first_lines(again.changed, 3), ", ")));
  }
  if (again.code == Rerun::Code::kept && launch.untracked > 0 && !code_of_now) {
    losses.push_back(fmt::format("{} that git did not have: not kept, so the servers' versions are used",
                                 counted(static_cast<std::size_t>(launch.untracked), "file")));
  }
  if (!again.unkept.empty() && !code_of_now) {
    losses.push_back(fmt::format("git does not have {}, and here {} changed since: the servers' {} used",
                                 visible_line(join(first_lines(again.unkept, 3), ", "), 200),
                                 again.unkept.size() == 1 ? "it has" : "they have",
                                 again.unkept.size() == 1 ? "version is" : "versions are"));
  }
  for (const std::string& name : again.missing) {
    losses.push_back(
        fmt::format("the value of {0} was not kept: give --env {0} VALUE, or -e {0}", visible_line(name)));
  }
  return losses;
}

// Shows information about the code, without asking.
void show_code(Context& context, const Rerun& again, bool code_of_now) {
  const std::string differ = again.changed.empty()
                                 ? ""
                                 : fmt::format("; {} here now: {}",
                                               counted(again.changed.size(), "file") +
                                                   (again.changed.size() == 1 ? " differs" : " differ"),
                                               join(first_lines(again.changed, 3), ", "));
  if (code_of_now) {
    context.terminal.notice("with the current code" + differ);
  } else if (again.code == Rerun::Code::frozen) {
    context.terminal.notice("with its original code, frozen as " + again.request.tree.substr(0, 12));
  } else if (again.code == Rerun::Code::kept) {
    context.terminal.notice(fmt::format("with its original code, commit {}{}{}",
                                        again.launch.commit.substr(0, 12),
                                        again.launch.changed ? " and its patch" : "", differ));
  }
}

void ask_about(Context& context, const RerunArguments& arguments, const std::vector<std::string>& losses) {
  for (const std::string& loss : losses) {
    context.terminal.warning(loss);
  }
  if (losses.empty() || arguments.yes || arguments.dry_run) {
    return;
  }
  const bool can_ask = context.terminal.stdin_is_terminal() && context.terminal.stderr_is_terminal();
  if (!can_ask) {
    throw Error::usage("nothing was started", "the launch cannot be the same as before",
                       "--yes starts it anyway");
  }
  if (context.ask_yes_no("Start it anyway?") != Answer::yes) {
    throw Error("nothing was started", "you did not say yes", "--code now runs the current code");
  }
}

int run_rerun(Context& context, const RerunArguments& arguments) {
  RerunRequest request = arguments.request;
  request.env = arguments.env.collect(context);
  request.more = shell_join(arguments.words);
  request.tree = arguments.code != "git";
  Rerun again = context.project().plan_rerun(request);
  const bool code_of_now = arguments.code == "now";
  if (arguments.code == "then" && again.code == Rerun::Code::gone) {
    throw Error::usage("the code of the launch is gone", why_gone(again.why, again.launch),
                       "--code now uses the current code");
  }
  ask_about(context, arguments, losses_of(again, code_of_now));
  show_code(context, again, code_of_now);
  if (arguments.dry_run) {
    const Plan plan = context.project().plan(again.request);
    context.options.json ? context.print(plan_json(plan)) : context.terminal.out(plan_text(plan));
    return 0;
  }
  if (context.stream) {  // for sending its code
    std::vector<std::string> servers = again.request.servers;
    std::ranges::transform(again.request.hosts, std::back_inserter(servers), &LaunchHost::name);
    context.stream->name_servers(context.project().server_names(servers));
  }
  const bool one_value = context.options.json && !context.stream;
  const LaunchDefaults usual = context.project().launch_defaults();
  const bool follow = arguments.follow.value_or(usual.follow.value_or(false)) && !one_value;
  again.request.await_lifelines = !follow;
  return start_on_screen(context, again.request, {follow, follow && usual.pull.value_or(false)},
                         [&] { return context.project().rerun(again, code_of_now); });
}

// ---- diff

struct DiffArguments {
  std::string from;
  std::string to = "now";
};

const char* kept_name(CodeKept kept) {
  constexpr const char* names[] = {"kept", "no_git", "no_commit", "no_patch", "not_sent", "submodules"};
  return names[static_cast<std::size_t>(kept)];
}

nlohmann::ordered_json diff_json(const LaunchDiff& diff) {
  return {{"from", jobs::to_json(static_cast<const LaunchSummary&>(diff.from))},
          {"to", diff.to ? jobs::to_json(static_cast<const LaunchSummary&>(*diff.to))
                         : nlohmann::ordered_json(nullptr)},
          {"differences", differences_json(diff.differences)},
          {"code",
           {{"from", kept_name(diff.code_from)},
            {"to", kept_name(diff.code_to)},
            {"files", diff.files},
            {"compared", diff.compared},
            {"unkept", diff.unkept},
            {"diff", diff.code}}}};
}

std::string code_text(const LaunchDiff& diff) {
  std::string text;
  if (diff.code_from != CodeKept::kept) {
    text += fmt::format("the code of {} is not kept: {}\n", keys_of(diff.from),
                        why_gone(diff.code_from, diff.from));
  }
  if (diff.code_to != CodeKept::kept) {
    text += diff.to ? fmt::format("the code of {} is not kept: {}\n", keys_of(*diff.to),
                                  why_gone(diff.code_to, *diff.to))
                    : "git does not have the current code\n";
  }
  const bool from_git = text.empty();
  if (!diff.compared) {
    return text + "it is unknown which files differ: the list of its files was not kept\n";
  }
  const std::string unkept =
      diff.unkept.empty()
          ? ""
          : fmt::format("{} that git does not have {} (by size and time): {}\n",
                        counted(diff.unkept.size(), "file"), diff.unkept.size() == 1 ? "differs" : "differ",
                        visible_line(join(diff.unkept, ", "), 10000));
  if (diff.files.empty()) {
    return text + (from_git ? "the code is the same, as far as git has it\n" : "the files are the same\n") +
           unkept;
  }
  text += fmt::format("{} of the code {}", counted(diff.files.size(), "file"),
                      diff.files.size() == 1 ? "differs" : "differ");
  return text + (from_git
                     ? "\n" + visible_text(diff.code) + unkept
                     : fmt::format(" (by size and time): {}\n", visible_line(join(diff.files, ", "), 10000)));
}

int run_diff(Context& context, const DiffArguments& arguments) {
  History history(context.project().folder());
  if (!history.launch(arguments.from).ended_at ||
      (arguments.to != "now" && !history.launch(arguments.to).ended_at)) {
    history = asked_history(context);
  }
  const LaunchDiff diff = history.diff(arguments.from, arguments.to, context.cancel);
  if (context.options.json) {
    context.print(diff_json(diff));
    return 0;
  }
  std::string text;
  if (!diff.differences.empty()) {
    ui::Table table(
        {"", ui::Column(keys_of(diff.from)).yielding(), ui::Column(keys_of(*diff.to)).yielding()});
    for (const LaunchDifference& one : diff.differences) {
      table.add({difference_name(one), one.values[0].value_or("-"), one.values[1].value_or("-")});
    }
    text = table.text(context.terminal) + "\n";
  }
  context.terminal.out(text + code_text(diff));
  return 0;
}

}  // namespace

void add_rerun(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_rerun);
  RerunRequest& request = arguments.request;
  add_launch_word(command, context, request.launch, "Key of any of its jobs, its name, or last")->required();
  command.add_option("words", arguments.words, "More words of the command, after --")->type_name("WORD");
  arguments.env.add(command);
  add_server_option(command, context, request.servers)
      ->description("Server: a name, a glob or a,b; repeatable (default: those that it had)");
  command.add_option("--cmd", request.command, "Another command, a line for the server's shell")
      ->type_name("C");
  command
      .add_option("--code", arguments.code,
                  "Code to run: then, which fails if it is gone; git, as then but not from the tree of a "
                  "frozen launch; or now")
      ->check(CLI::IsMember({"then", "git", "now"}));
  command.add_flag("-y,--yes", arguments.yes, "Start it even if it cannot be the same as before");
  command.add_flag("--dry-run", arguments.dry_run, "Show what would start, and start nothing");
  command.add_option("--name", request.name, "Name in the history (default: its own)")->type_name("NAME");
  command.add_option("--note", request.note, "Note for the history")->type_name("TEXT");
  add_switch(command, "--follow,!--no-follow", arguments.follow, "Follow rank 0 until all ranks have ended");
}

void add_diff(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_diff);
  add_launch_word(command, context, arguments.from, "Key of any of its jobs, its name, or last")->required();
  CLI::Option* to = command.add_option("to", arguments.to, "Another launch, or now (default): the code here");
  to->type_name("KEY|now");
  context.completers[to] = NameKind::past;
}

}  // namespace remote::cli
