#include "cli/show/events.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "jobs/job_json.hpp"

namespace remote::cli {
namespace {

// One function per event that is shown; the others are ignored.
class EventText {
 public:
  explicit EventText(Context& context) : context_(context), terminal_(context.terminal) {}

  void operator()(const ConfigWarning& event) { terminal_.warning(event.text); }
  void operator()(const StoreProblem& event) { terminal_.warning(event.text); }
  void operator()(const SilentServers& event) {
    for (const SameErrors& same : told_once(event.errors)) {
      std::string reason = same.message();
      if (reason.ends_with('.')) {
        reason.pop_back();  // the period at the end of the server's sentence
      }
      terminal_.warning(fmt::format("{}; the state of {} jobs is unknown", reason,
                                    same.servers.size() > 1 ? "their" : "its"));
    }
  }
  void operator()(const PartsFailed& event) { context_.show(event.errors); }
  void operator()(const NewHostKey& key) {
    terminal_.notice(fmt::format("new host key of {} ({}) accepted: {} {}", key.server, key.host, key.type,
                                 key.fingerprint));
    if (!key.warning.empty()) {
      terminal_.warning(key.warning);
    }
  }
  void operator()(const LoginProblem& event) {
    terminal_.warning(event.error.message());
    if (const std::string hint = hint_of(event.error); !hint.empty()) {
      terminal_.notice(" hint: " + hint);
    }
  }
  void operator()(const SlowLogin& event) {
    terminal_.notice(
        event.server +
        ": waiting for its login shell to begin the command (a start file may be slow or ask something)");
  }
  void operator()(const LinkLost& event) {
    terminal_.notice(
        event.reached
            ? fmt::format("{}: connection lost ({}); its processes may keep running. Connecting again …",
                          event.server, event.reason)
            : fmt::format("{}: not reached ({}). Trying again …", event.server, event.reason));
    if (!event.hint.empty()) {
      terminal_.notice(" hint: " + event.hint);
    }
  }
  void operator()(const LinkBack& event) {
    terminal_.notice(event.server + ": connected again, continuing where it stopped");
  }
  void operator()(const NoLifeline& event);
  void operator()(const SweepTrouble& event);
  void operator()(const RankWaits& event) {
    terminal_.notice(fmt::format("{}: waiting in {}: {}", describe(event.job), wait_text(event.wait),
                                 attach_command(event.job, event.wait)));
  }
  void operator()(const JobsQueued& event) {
    for (const Batch& batch : by_launch(event.jobs)) {
      const Job& first = batch.front();
      const std::string reason = jobs::reason_text(first.reason);
      terminal_.notice(
          fmt::format("{}: queued{}",
                      first.launch && !first.point ? fmt::format("launch {}", first.key) : describe(first),
                      reason.empty() ? "" : " (" + visible_line(reason, 200) + ")"));
    }
  }
  void operator()(const GpuCountDiffers& event) {
    terminal_.warning(fmt::format("{}: configs.yaml expects {} GPUs, the server shows {}", event.server,
                                  event.expected, event.found));
  }
  void operator()(const CheckWarned& event) {
    terminal_.warning(
        fmt::format("{}: {}: {}", some_of(event.servers), event.finding.name, event.finding.detail));
  }
  void operator()(const CodeDiffers& event) {
    show_names(context_, event.server + ": differs from here:", event.names);
  }
  void operator()(const CodeChanged& event);
  void operator()(const LaunchCode& event);
  void operator()(const SameLaunchRuns& event) {
    terminal_.warning(fmt::format(
        "launch {0} runs the same command on {1} already; to end it: remote job-kill --launch {0}", event.key,
        server_names(event.servers)));
  }
  void operator()(const EndingRanks& event) {
    // It may be a consequence of another rank's failure: only the verdict names a rank.
    terminal_.notice(event.failed ? "a rank failed; ending the other ranks"
                                  : "ending the ranks that may have started (--on-failure=leave keeps them)");
  }
  void operator()(const LinkLeftOut& event);
  void operator()(const EnvironmentsLeftOut& event);
  void operator()(const UselessPatterns& event);
  void operator()(const UnfetchedFiles& event);
  void operator()(const KeyMade& event) { terminal_.notice("made the key " + event.file); }
  template <typename Other>
  void operator()(const Other&) {}

 private:
  Context& context_;
  ui::Terminal& terminal_;
};

// "train.py, model.py, data.py and 4 more"
std::string named(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  std::ranges::transform(names, std::back_inserter(shown),
                         [](const std::string& name) { return visible_line(name); });
  return join_first(shown, 3);
}

void EventText::operator()(const CodeChanged& event) {
  const std::string servers = named(event.servers);
  const char* them = event.names.size() == 1 ? "it" : "them";
  if (event.there) {
    terminal_.warning(
        event.by.empty()
            ? fmt::format("changed on {} since the last rsync, or sent there from elsewhere: {}; "
                          "`remote rsync --overwrite` replaces {}",
                          servers, named(event.names), them)
            : fmt::format("{} {} other code, sent {}: {}; `remote rsync --overwrite` replaces {}", servers,
                          event.servers.size() == 1 ? "has" : "have", event.by, named(event.names), them));
    return;
  }
  if (event.gone) {
    terminal_.warning(
        fmt::format("the project was sent to {}, but its files are gone there: `remote prepare` sends it "
                    "again, with its environment",
                    servers));
    return;
  }
  terminal_.warning(
      event.never_sent
          ? fmt::format("nothing was sent from here to {} yet, so other code may run there; --rsync sends it",
                        servers)
          : fmt::format("changed here since the last rsync to {}: {}; --rsync sends {}", servers,
                        named(event.names), them));
}

// "commit 1a2b3c4 with changes (in libs/sub/) and 2 untracked files"
std::string commit_text(const LaunchCode& code) {
  if (code.commit.empty()) {
    return "no commit";
  }
  std::string text = "commit " + code.commit.substr(0, 7);
  if (code.changed || !code.changed_in.empty()) {
    text += " with changes";
  }
  if (!code.changed_in.empty()) {
    text += " (in " + visible_line(join(code.changed_in, ", "), 200) + ")";
  }
  if (code.untracked > 0) {
    text += " and " + counted(static_cast<std::size_t>(code.untracked), "untracked file");
  }
  return text;
}

void EventText::operator()(const LaunchCode& event) {
  std::vector<std::string> parts{commit_text(event)};
  if (!event.different.empty()) {
    parts.push_back("different on " + named(event.different));
  }
  if (!event.unknown.empty()) {
    parts.push_back("not compared on " + named(event.unknown));
  }
  if (!event.same.empty()) {
    parts.push_back("same on " + counted(event.same.size(), "server"));
  }
  std::string text = "code: " + join(parts, ", ");
  if (event.gone_here > 0) {
    text += fmt::format("; {} that {} gone here {} still there (`remote rsync --delete` removes {})",
                        counted(event.gone_here, "file"), event.gone_here == 1 ? "is" : "are",
                        event.gone_here == 1 ? "is" : "are", event.gone_here == 1 ? "it" : "them");
  }
  terminal_.notice(text);
}

void EventText::operator()(const LinkLeftOut& event) {
  using Why = LinkLeftOut::Why;
  const std::string name = visible_line(event.name);
  const std::string target = visible_line(event.target);
  if (event.target.empty()) {
    terminal_.warning(name + " is not sent: it is a private key");
    return;
  }
  terminal_.warning(fmt::format(
      "the link {} is not sent: {}", name,
      event.why == Why::secret    ? fmt::format("it points to {}, a place for secrets", target)
      : event.why == Why::nowhere ? fmt::format("it points to {}, which does not exist", target)
      : event.why == Why::circle
          ? fmt::format("it points to {}, which contains the link itself", target)
          : fmt::format("it points out of the project, to {} (`remote trust` allows it)", target)));
}

void EventText::operator()(const EnvironmentsLeftOut& event) {
  std::vector<std::string> names;
  std::ranges::transform(event.names, std::back_inserter(names),
                         [](const std::string& name) { return visible_line(name); });
  terminal_.notice(fmt::format("{} of this machine {} not sent: {}",
                               counted(names.size(), "Python environment"), names.size() == 1 ? "is" : "are",
                               join(names, ", ")));
}

// The suggested replacement.
std::string advice(UselessPattern::Why why) {
  using Why = UselessPattern::Why;
  switch (why) {
    case Why::negated:
      return "'+ NAME', above the pattern that excludes it, keeps a file";
    case Why::comment:
      return "put the comment on its own line";
    case Why::blank:
      return "remove the blanks around it";
    case Why::quoted:
      return "remove the quotes";
    case Why::dots:
      return "write '/NAME' for a name in the project's folder";
    case Why::absolute:
      return "paths begin at the project's folder";
    case Why::sign:
      return "write a blank after the sign";
    case Why::braces:
      return "write a line for each name";
    case Why::backslash:
      return "separate folders by '/'";
    case Why::slashes:
      return "write a single '/'";
    case Why::bracket:
      return "'[' needs a ']'; '\\[' is the character itself";
    case Why::variable:
      return "variables are not expanded";
    case Why::empty:
      return "write a pattern after the sign";
    case Why::too_long:
      break;
  }
  return "it is too long";
}

void EventText::operator()(const UselessPatterns& event) {
  for (const UselessPattern& one : event.patterns) {
    terminal_.warning(fmt::format("{}:{}: '{}' matches no file: {}", event.file, one.line,
                                  visible_line(one.text, 100), advice(one.why)));
  }
}

void EventText::operator()(const UnfetchedFiles& event) {
  const auto warn = [&](const std::vector<std::string>& names, const char* one, const char* several,
                        const char* fix) {
    if (!names.empty()) {
      terminal_.warning(fmt::format("{} ({}): {}",
                                    names.size() == 1 ? one : fmt::format("{} {}", names.size(), several),
                                    named(names), fix));
    }
  };
  warn(event.pointers, "1 file is only a pointer of git-lfs", "files are only pointers of git-lfs",
       "git lfs pull");
  warn(event.submodules, "1 submodule is empty here", "submodules are empty here",
       "git submodule update --init --recursive");
}

void EventText::operator()(const SweepTrouble& event) {
  using Cause = SweepTrouble::Cause;
  const std::string why = event.cause == Cause::stopped ? "its process there was stopped"
                          : event.cause == Cause::gone  ? "its records on the server are gone"
                          : event.cause == Cause::dead  ? "its process there is dead"
                                                        : visible_line(event.detail);
  terminal_.warning(
      event.all
          ? fmt::format("{}: gives out no points of sweep {}, {}. To continue: remote sweep --resume {}",
                        event.server, event.key, why, event.key)
          : fmt::format("{}: starts no points of sweep {}: {}", event.server, event.key, why));
}

void EventText::operator()(const NoLifeline& event) {
  using Cause = NoLifeline::Cause;
  const std::string consequence =
      "when a rank fails, its ranks are ended only while this machine follows (--follow)";
  for (const NoLifeline::Server& server : event.servers) {
    terminal_.warning(
        server.cause == Cause::no_port
            ? fmt::format("{}: no lifeline, no second port is free: {}", server.name, consequence)
        : server.cause == Cause::restarted
            ? fmt::format("{}: its lifeline had died; it was started again just now", server.name)
        : server.cause == Cause::dead
            ? fmt::format("{}: its lifeline has died and cannot be started again ({}): {}", server.name,
                          visible_line(server.detail), consequence)
            : fmt::format("{}: no lifeline: {}", server.name, server.detail));
  }
  if (std::ranges::find(event.servers, Cause::no_connection, &NoLifeline::Server::cause) !=
      event.servers.end()) {
    terminal_.warning(
        "a failed rank therefore ends the ranks on other servers only while this machine follows (--follow). "
        "To fix it, let the servers reach each other's TCP ports, or set internal_address of the first "
        "server of the launch in configs.yaml to one that the others reach");
  }
}

}  // namespace

void show_names(Context& context, const std::string& title, const std::vector<std::string>& names) {
  if (!names.empty()) {
    context.terminal.notice(title);
    for (const std::string& line : first_lines(names, 10)) {
      context.terminal.notice("    " + line);
    }
  }
}

void show_event(Context& context, const Event& event) {
  std::visit(EventText(context), event);
}

}  // namespace remote::cli
