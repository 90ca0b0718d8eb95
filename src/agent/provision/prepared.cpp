#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>

#include <sys/stat.h>
#include <unistd.h>

#include "agent/facts/others.hpp"
#include "agent/host/processes.hpp"
#include "agent/host/variables.hpp"
#include "agent/provision/failure.hpp"
#include "agent/provision/prologue.hpp"
#include "agent/provision/provision.hpp"
#include "agent/provision/python_place.hpp"
#include "agent/provision/source.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::string_view token_prefix = "shared.";
constexpr std::chrono::minutes longest_call{60};

// Returns the server of this call that was the first to use this folder. A link is created together with its
// target, even over NFS, so all servers agree.
std::string find_first_server(const Path& scripts, const wire::PreparedRequest& request) {
  const std::string name = std::string(token_prefix) + request.share_token;
  const Path token = scripts / name;
  if (make_open_folders(scripts)) {
    [[maybe_unused]] const int made = ::symlink(request.server.c_str(), token.c_str());
  }
  // A newer token may belong to a call that is still running.
  const std::chrono::milliseconds now = read_wall_clock();
  for (const std::string& other : list_names(scripts)) {
    if (other.starts_with(token_prefix) && other != name) {
      const auto info = look_at_entry(scripts / other);
      if (info && now - std::chrono::seconds(info->st_mtime) > longest_call) {
        ::unlink((scripts / other).c_str());
      }
    }
  }
  return wire::to_line(read_link(token), 1000);
}

// `error` is the errno of the attempt. Throws ProvisionError.
[[noreturn]] void refuse_folder(const Path& folder, int error) {
  const std::string what = "cannot make the project's folder " + folder.string() + ": ";
  const std::string elsewhere = "choose another remote_path in configs.yaml";
  for (Path path = folder; path.string().size() > 1; path = path.parent_path()) {
    const bool is_there = exists(path);
    const std::string target = is_there ? "" : read_link(path);
    if (!target.empty()) {
      throw ProvisionError(what + path.string() + " is a link to " + target + ", which does not exist",
                           "mount the disk of the link's target, or remove the link");
    }
    if (is_there && !is_folder(path)) {
      throw ProvisionError(what + path.string() + " is not a folder", elsewhere);
    }
    if (is_there) {
      break;
    }
  }
  throw ProvisionError(what + std::strerror(error), elsewhere);
}

void check_steps(const Host& host, const wire::PreparedRequest& request, wire::PreparedReply& reply) {
  const PythonPlace place(host, request.python);
  const Prologue prologue =
      run_prologue(add_variables(host, request.python.variables), request.python.prologue,
                   [&](std::string_view text) { append_end(reply.errors, text); });
  reply.errors.clear();
  if (!make_open_folders(place.project())) {
    refuse_folder(place.project(), errno);
  }
  if (request.is_sending) {
    reply.source = read_source(place.scripts());
    reply.running = find_running_jobs(host, place.project()).here;
  }
  if (!request.share_token.empty()) {
    reply.first = find_first_server(place.scripts(), request);
  }
  if (request.is_repeated) {
    place.refresh();
  }
  reply.has_setup = find_missing_packages(prologue.host, request.python.system_packages).empty() &&
                    place.is_set_up(prologue.host);
  reply.has_packages = reply.has_setup && has_stamp(place.packages_stamp(), place.packages_digest(host));
}

}  // namespace

wire::PreparedReply find_prepared(const Host& host, const wire::PreparedRequest& request) {
  wire::PreparedReply reply;
  try {
    check_steps(host, request, reply);
  } catch (const ProvisionError& error) {
    reply.failure = error.describe();
    if (reply.errors.size() > longest_output) {
      reply.errors.erase(0, reply.errors.size() - longest_output);
    }
  }
  return reply;
}

}  // namespace remote::agent
