#include "agent/container/check_container.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "agent/host/run.hpp"
#include "agent/host/variables.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::chrono::seconds engine_limit{20};
constexpr std::chrono::seconds prologue_limit{40};
constexpr std::chrono::hours fetch_limit{24};  // a fetch also ends if the client disconnects

// Returns the host with the environment after the user's prologue, which may be what makes an engine
// available. Uses `command -p`, because the prologue may also change PATH.
Host enter_prologue(Host host, const std::string& prologue) {
  constexpr std::string_view mark = "\n@environment\n";
  constexpr const char* script =
      "prologue=$1; shift\n"
      "eval \"$prologue\" >/dev/null 2>&1\n"
      "set +e +u +x +v +f +C\n"
      "printf '\\n@environment\\n'\n"
      "command -p cat /proc/self/environ\n";
  if (trim(prologue).empty()) {
    return host;
  }
  const std::string out =
      run(host, {.argv = {"sh", "-c", script, "sh", prologue}, .limit = prologue_limit}).out;
  const std::size_t at = out.find(mark);
  if (at == std::string::npos) {
    return host;
  }
  replace_environment(host, std::string_view(out).substr(at + mark.size()));
  return host;
}

// Explains why a program failed: the last nonblank line of its output.
std::string explain_failure(const RunResult& result) {
  std::string_view text = trim(result.out);
  if (result.timed_out) {
    return "it does not answer";
  }
  if (text.empty()) {
    return "exit status " + std::to_string(result.code);
  }
  return wire::to_line(text.substr(text.rfind('\n') + 1), 300);
}

class ContainerCheck {
 public:
  ContainerCheck(const Host& host, const wire::ContainerRequest& request)
      : host_(enter_prologue(host, request.prologue)),
        request_(request),
        project_(host.expand(request.project)) {}

  wire::ContainerReply find() {
    using enum ContainerEngine;
    using enum wire::ContainerOutcome;
    std::vector<ContainerEngine> engines{podman, docker, apptainer};
    if (request_.engine) {
      engines = {*request_.engine};
    }
    wire::ContainerReply reply;
    for (const ContainerEngine engine : engines) {
      bool is_rootless = false;
      if (!works(engine, is_rootless) && !request_.is_login_node) {
        continue;
      }
      const wire::ContainerOutcome outcome = find_image(engine);
      if (outcome == ready || (outcome == missing && reply.outcome == failed)) {
        reply = {.outcome = outcome, .engine = engine, .rootless = is_rootless};
      }
      if (outcome == ready) {
        break;
      }
    }
    if (reply.outcome == failed) {
      reply.reason = reasons_;
    } else if (request_.fetch) {
      fetch(reply);
    }
    reply.reason = wire::to_line(reply.reason, 2000);
    return reply;
  }

 private:
  void fail(const std::string& reason) { reasons_ += (reasons_.empty() ? "" : "; ") + reason; }

  // The name of the engine's program. Apptainer used to be called singularity.
  std::string find_name(ContainerEngine engine) const {
    const bool is_old = engine == ContainerEngine::apptainer && host_.find_program("apptainer").empty();
    return is_old ? "singularity" : std::string(wire::name_of_value(engine));
  }

  RunResult call(ContainerEngine engine, std::vector<std::string> words,
                 std::chrono::milliseconds limit = engine_limit) const {
    words.insert(words.begin(), find_name(engine));
    return run(host_, {.argv = std::move(words), .limit = limit, .with_stderr = true});
  }

  // Whether this user can use the engine.
  bool works(ContainerEngine engine, bool& is_rootless) {
    const std::string name(wire::name_of_value(engine));
    if (host_.find_program(find_name(engine)).empty()) {
      fail(name + " is not installed");
      return false;
    }
    if (engine == ContainerEngine::docker) {
      const RunResult info = call(engine, {"info", "--format", "{{.SecurityOptions}}"});
      // If the daemon is not running, some versions print these errors and exit with 0.
      if (!info.succeeded() || info.out.find("permission denied") != std::string::npos ||
          info.out.find("annot connect") != std::string::npos) {
        fail("docker cannot be used: " + explain_failure(info));
        return false;
      }
      is_rootless = info.out.find("rootless") != std::string::npos;
    } else if (engine == ContainerEngine::podman) {
      is_rootless = ::geteuid() != 0;
    }
    return true;
  }

  // Returns `failed` if the engine does not work.
  wire::ContainerOutcome find_image(ContainerEngine engine) {
    using enum wire::ContainerOutcome;
    const std::string& image = request_.image;
    if (engine == ContainerEngine::podman) {
      const RunResult result = call(engine, {"image", "exists", image});
      if (result.succeeded() || (result.code == 1 && !result.timed_out)) {
        return result.code == 0 ? ready : missing;
      }
      fail("podman cannot be used: " + explain_failure(result));
      return failed;
    }
    if (engine == ContainerEngine::docker) {
      return call(engine, {"image", "inspect", "--format", ".", image}).succeeded() ? ready : missing;
    }
    if (image.find("://") != std::string::npos) {
      // Apptainer cannot list its cache. If a login node lacks apptainer, each node fetches the image itself.
      return host_.find_program(find_name(engine)).empty() ? ready : missing;
    }
    return exists(image.starts_with('/') ? Path(image) : project_ / image) ? ready : missing;
  }

  void fetch(wire::ContainerReply& reply) const {
    const bool is_apptainer = reply.engine == ContainerEngine::apptainer;
    const RunResult result = call(*reply.engine,
                                  is_apptainer ? std::vector<std::string>{"exec", request_.image, "true"}
                                               : std::vector<std::string>{"pull", "--quiet", request_.image},
                                  fetch_limit);
    if (result.succeeded()) {
      reply.outcome = wire::ContainerOutcome::ready;
    } else {
      reply = {.outcome = wire::ContainerOutcome::failed,
               .reason = "cannot fetch the image " + request_.image + ": " + explain_failure(result)};
    }
  }

  Host host_;
  const wire::ContainerRequest& request_;
  Path project_;
  std::string reasons_{};  // why engines do not work
};

}  // namespace

wire::ContainerReply check_container(const Host& host, const wire::ContainerRequest& request) {
  return ContainerCheck(host, request).find();
}

}  // namespace remote::agent
