#include "cli/show/events.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "base/visible.hpp"
#include "cli/show/job_words.hpp"

namespace remote::cli {
namespace {

constexpr std::size_t shown_names = 10;

// One function an event that has words; the others are passed by.
class Words {
 public:
  explicit Words(Context& context) : context_(context), terminal_(context.terminal) {}

  void operator()(const ConfigWarning& event) { terminal_.warning(event.text); }
  void operator()(const StoreProblem& event) { terminal_.warning(event.text); }
  void operator()(const SilentServer& event) {
    terminal_.warning(event.error.message() + "; the state of its jobs is unknown");
  }
  void operator()(const PartFailed& event) { context_.show(event.error); }
  void operator()(const NewHostKey& key) {
    terminal_.notice(fmt::format("new host key of {} ({}) accepted: {} {}", key.server, key.host, key.type,
                                 key.fingerprint));
    if (!key.warning.empty()) {
      terminal_.warning(key.warning);
    }
  }
  void operator()(const LinkLost& event) {
    terminal_.notice(event.reached
                         ? fmt::format("{}: connection lost ({}); the job goes on there. Connecting again …",
                                       event.server, event.reason)
                         : fmt::format("{}: not reached ({}). Trying again …", event.server, event.reason));
  }
  void operator()(const LinkBack& event) {
    terminal_.notice(event.server + ": connected again, going on where it stopped");
  }
  void operator()(const NoLifeline& event);
  void operator()(const GpuCountDiffers& event) {
    terminal_.warning(fmt::format("{}: configs.yaml expects {} GPUs, the server shows {}", event.server,
                                  event.expected, event.found));
  }
  void operator()(const CodeDiffers& event) {
    show_names(context_, event.server + ": differs from here:", event.names);
  }
  void operator()(const EndingRanks& event) {
    terminal_.notice(event.failed
                         ? fmt::format("{}: {}; ending the other ranks", describe(*event.failed),
                                       state_text(*event.failed))
                         : "ending the ranks that have started, or may have (--on-failure=leave keeps them)");
  }
  void operator()(const KeyMade& event) { terminal_.notice("made the key " + event.file); }
  template <typename Other>
  void operator()(const Other&) {}

 private:
  Context& context_;
  ui::Terminal& terminal_;
};

void Words::operator()(const NoLifeline& event) {
  using Cause = NoLifeline::Cause;
  const std::string consequence =
      "when a rank fails, its ranks are ended only while this machine follows (--follow)";
  for (const NoLifeline::Server& server : event.servers) {
    terminal_.warning(
        server.cause == Cause::no_python
            ? fmt::format("{}: no lifeline, it has no python3 of 3.6 or later: {}", server.name, consequence)
        : server.cause == Cause::no_port
            ? fmt::format("{}: no lifeline, no second port is free: {}", server.name, consequence)
            : fmt::format("{}: no lifeline: {}", server.name, server.detail));
    if (server.cause == Cause::no_python && event.for_all) {
      terminal_.warning("and without the first server there is none between the others");
    }
  }
  if (event.servers.front().cause == Cause::no_connection) {
    terminal_.warning(
        "a failed rank therefore ends the ranks on other servers only while this machine follows (--follow). "
        "To mend "
        "it: let the servers reach each other's TCP ports, or give the first server of the launch the "
        "internal_address by which the others reach it, in configs.yaml");
  }
}

}  // namespace

void show_event(Context& context, const Event& event) {
  std::visit(Words(context), event);
}

void show_names(Context& context, const std::string& title, const std::vector<std::string>& names) {
  if (names.empty()) {
    return;
  }
  context.terminal.notice(title);
  for (std::size_t i = 0; i < std::min(names.size(), shown_names); ++i) {
    context.terminal.notice("    " + visible_line(names[i]));
  }
  if (names.size() > shown_names) {
    context.terminal.notice(fmt::format("    … and {} more", names.size() - shown_names));
  }
}

}  // namespace remote::cli
