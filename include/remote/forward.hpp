#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <remote/error.hpp>
#include <remote/job.hpp>
#include <remote/launch.hpp>

// Ports of servers on this machine's loopback address, and jobs that are used through one.

namespace remote {

// One port. All listening is on 127.0.0.1, here and there: what else can connect to it is in
// docs/security.md.
struct ForwardedPort {
  std::string server{};            // a name, or a glob that names one server
  std::optional<int> rank{};       // with `server` empty: the server of this rank of ForwardRequest::launch
  int local = 0;                   // the port here; 0: the same number as `port`
  std::string host = "127.0.0.1";  // where `port` is, as the server sees it
  int port = 0;
  // The other way: the server listens on its `port`, and what connects there is connected to `local` here.
  bool reverse = false;
};

struct Listening {
  std::string server;
  int local = 0;  // the port of 127.0.0.1 here; not ForwardedPort::local where that was taken
};

// Callbacks get the index of the port in `ports`.
struct ForwardRequest {
  std::vector<ForwardedPort> ports{};
  std::string launch = "last";  // of ForwardedPort::rank; as JobSelection::launches
  std::optional<Job> job{};     // the call ends when this job has ended
  std::function<void(std::size_t, const Listening&)> on_listening{};
  // A connection could not be made at the other end, and was closed. Told again only after one that worked.
  std::function<void(std::size_t, const Error&)> on_refused{};
  std::function<void(const Job&)> on_ended{};  // the job
};

// A program with pages for a browser.
enum class WebTool { tensorboard, jupyter };
struct WebRequest {
  WebTool tool = WebTool::tensorboard;
  std::string server{};         // default: the first one
  std::string folder = "runs";  // of tensorboard: where event files are, from the project's folder on
  int local = 0;                // the port here; 0: 6006 or 8888. One that is taken is replaced by another
  bool keep = false;            // leave a job running that this call has started
  // Before its port answers. `joined`: it was running already, and is left running.
  std::function<void(const Job&, bool joined)> on_job{};
  // What to open: "http://127.0.0.1:8888/…", with the token that the job asks for. A secret.
  std::function<void(const Job&, const Listening&, const std::string& address)> on_address{};
  std::function<void(const Error&)> on_refused{};
  std::function<void(const Job&)> on_ended{};          // by itself
  std::function<void(const KillResult&)> on_killed{};  // by this call, which was cancelled
};

}  // namespace remote
