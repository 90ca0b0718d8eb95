#include "agent/provision/steps.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/provision/failure.hpp"
#include "agent/provision/prologue.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t longest_text = 8192;
constexpr std::chrono::hours longest_run{24 * 365};  // it also ends if the client disconnects

}  // namespace

Steps::Steps(const Host& host, const std::string& prologue, Stream& stream) : host_(host), stream_(stream) {
  Prologue entered = run_prologue(host, prologue, [this](std::string_view text) { send_errors(text); });
  host_ = std::move(entered.host);
  limits_ = std::move(entered.limits);
}

void Steps::begin(const std::string& step) {
  stream_.send(wire::ProvisionReply{.step = wire::to_line(step, longest_text)});
}

void Steps::note(const std::string& text) {
  stream_.send(wire::ProvisionReply{.note = wire::to_line(text, longest_text)});
}

void Steps::send_output(std::string_view text, std::string wire::ProvisionReply::*field) {
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), longest_output))) {
    wire::ProvisionReply part;
    part.*field = text.substr(0, longest_output);
    stream_.send(part);
  }
}

void Steps::check_client() const {
  if (host_.is_cancelled() || stream_.is_closed()) {
    throw ProvisionError("interrupted");
  }
}

void Steps::enter_folder(const Path& folder) {
  folder_ = folder;
  host_.environment["PWD"] = folder.string();
}

bool Steps::run(const Command& command, std::string* errors) {
  RunRequest request;
  request.on_output = [this](std::string_view text) { send_out(text); };
  request.on_errors = [this, errors](std::string_view text) {
    send_errors(text);
    if (errors != nullptr) {
      append_end(*errors, text);
    }
  };
  return run_program(command, std::move(request)).succeeded();
}

bool Steps::run_silently(const Command& command) {
  return run_program(command, {}).succeeded();
}

std::optional<std::string> Steps::read(const Command& command) {
  RunResult result = run_program(command, {});
  return result.succeeded() ? std::optional(std::move(result.out)) : std::nullopt;
}

RunResult Steps::read_all(const Command& command) {
  RunRequest request;
  request.with_stderr = true;
  return run_program(command, std::move(request));
}

// A shell sets the limits and the umask, and then executes the program in its place.
RunResult Steps::run_program(const Command& command, RunRequest request) {
  check_client();
  request.argv = {"sh", "-c", "{ " + limits_ + "} >/dev/null 2>&1\nexec \"$@\"", "sh"};
  request.argv.insert(request.argv.end(), command.begin(), command.end());
  request.program = "/bin/sh";
  request.folder = folder_;
  request.limit = longest_run;
  request.lease = inherited_;
  request.grace = std::chrono::seconds(5);
  RunResult result = agent::run(host_, request);
  check_client();
  return result;
}

}  // namespace remote::agent
