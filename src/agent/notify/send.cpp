#include "agent/notify/send.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <unistd.h>

#include "agent/host/descriptor.hpp"
#include "agent/host/processes.hpp"
#include "agent/host/run.hpp"
#include "agent/job/job_files.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "rules/python_version.hpp"
#include "wire/json_text.hpp"

namespace remote::agent {
namespace {

constexpr std::chrono::seconds command_limit{60};
constexpr std::chrono::minutes post_limit{10};  // post.py waits up to 30 s for each step
constexpr std::size_t most_shown = 500;

std::chrono::seconds read_seconds() {
  return std::chrono::floor<std::chrono::seconds>(read_wall_clock());
}

}  // namespace

NotificationSender::NotificationSender(const Host& host, std::string program, std::string activate)
    : host_(host), program_(std::move(program)), activate_(std::move(activate)) {}

SendResult NotificationSender::send(const wire::NotifySpec& spec, const Notification& notification) {
  try {
    return spec.url.empty() ? run_command(spec, notification) : post(spec, notification);
  } catch (const CannotStart& error) {
    return {Arrival::failed, error.what()};
  }
}

SendResult NotificationSender::post(const wire::NotifySpec& spec, const Notification& notification) {
  if (!python_) {
    python_ = find_own_python(host_, activate_);
  }
  if (!python_) {
    return {Arrival::impossible, std::string("there is no ") + rules::usable_python};
  }
  // The URL is secret, so it must not be in an argument.
  const Descriptor input = hold_text(wire::to_json_text(compose_post(spec, notification, read_seconds())));
  const RunResult result =
      run(host_, {.argv = python_->command({"-c", program_}), .limit = post_limit, .input = input.get()});
  if (result.timed_out) {
    return {Arrival::unknown, "no answer; it may have arrived"};
  }
  const std::size_t end = result.out.find(' ');
  const std::string word = result.out.substr(0, end);
  const std::string answer = end == std::string::npos ? "" : result.out.substr(end + 1);
  if (word == "sent") {
    return {Arrival::sent, answer};
  }
  if (word == "unknown") {
    return {Arrival::unknown, answer};
  }
  return {Arrival::failed, word == "failed" ? answer : "its program failed"};
}

SendResult NotificationSender::run_command(const wire::NotifySpec& spec, const Notification& notification) {
  // The command is secret too.
  const Descriptor script = hold_text(spec.command + "\n");
  const Descriptor input = hold_text(compose_json(spec, notification, read_seconds()));
  std::string output;
  const RunResult result =
      run(host_, {.argv = {"sh", text::format("/proc/{}/fd/{}", ::getpid(), script.get())},
                  .folder = host_.expand(spec.folder),
                  .limit = command_limit,
                  .with_stderr = true,
                  .on_output = [&](std::string_view data) { append_end(output, data); },
                  .input = input.get()});
  if (result.timed_out) {
    return {Arrival::unknown, text::format("the command took longer than {} s", command_limit.count())};
  }
  const std::size_t begin = output.size() - std::min(output.size(), most_shown);
  const std::string_view shown = trim(std::string_view(output).substr(begin));
  return {result.code == 0 ? Arrival::sent : Arrival::failed,
          text::format("exit {}{}{}", result.code, shown.empty() ? "" : ": ", shown)};
}

}  // namespace remote::agent
