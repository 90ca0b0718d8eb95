#include "agent/provision/prologue.hpp"

#include <chrono>

#include "agent/host/descriptor.hpp"
#include "agent/host/run.hpp"
#include "agent/host/variables.hpp"
#include "agent/job/job_files.hpp"
#include "agent/provision/failure.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::chrono::hours longest_prologue{24};  // it also ends if the client disconnects
constexpr std::string_view default_limits = "umask 022\n";

// Prints "failed STATUS", or else the limits, a zero byte, and the environment. Uses `command -p`, because
// the prologue may change PATH.
constexpr std::string_view report_script =
    "\nif [ -n \"${__failed-}\" ]; then\n"
    "  echo \"failed $__failed\"\n"
    "  exit\n"
    "fi\n"
    "for __flag in d l n s t v; do\n"
    "  echo \"ulimit -S -$__flag $(ulimit -S \"-$__flag\")\"\n"
    "done 2>/dev/null\n"
    "printf 'umask %s\\n\\000' \"$(umask)\"\n"
    "command -p cat /proc/self/environ\n";

}  // namespace

Prologue run_prologue(const Host& host, const std::string& text,
                      const std::function<void(std::string_view)>& on_errors) {
  Prologue prologue{host, std::string(default_limits)};
  if (trim(text).empty()) {
    return prologue;
  }
  // The text is passed as a file, because an argument is limited to 128 KiB.
  const Descriptor script = hold_text(prologue.limits + text + std::string(report_script));
  const RunResult result = run(host, {.argv = {"sh"},
                                      .program = "/bin/sh",
                                      .limit = longest_prologue,
                                      .on_errors = on_errors,
                                      .input = script.get(),
                                      .grace = std::chrono::seconds(5)});
  const std::size_t end = result.out.find('\0');
  if (end == std::string::npos) {
    const std::string_view words = trim(result.out);
    const std::size_t status = words.rfind("failed ");
    throw ProvisionError("the prologue in configs.yaml failed (exit code " +
                             (status == std::string::npos ? std::to_string(result.code)
                                                          : std::string(words.substr(status + 7))) +
                             ")",
                         "if it needs files of the project, send the project first");
  }
  prologue.limits = result.out.substr(0, end);
  replace_environment(prologue.host, std::string_view(result.out).substr(end + 1));
  return prologue;
}

}  // namespace remote::agent
