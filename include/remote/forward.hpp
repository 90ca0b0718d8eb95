#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <remote/error.hpp>
#include <remote/job.hpp>
#include <remote/launch.hpp>

// Forwarding of server ports to this machine's loopback address, and jobs that are used through a forwarded
// port.

namespace remote {

// One port. Both ends listen on 127.0.0.1 only; docs/security.md says who else can connect to it.
struct ForwardedPort {
  std::string server{};       // a name, or a glob that names one server
  std::optional<int> rank{};  // if `server` is empty: use the server of this rank of ForwardRequest::launch
  int local = 0;              // the port here; 0: same as `port`
  std::string host = "127.0.0.1";  // the host of `port`, as seen from the server
  int port = 0;
  // Forward in the other direction: the server listens on `port` and forwards to `local` here.
  bool reverse = false;
};

struct Listening {
  std::string server;
  int local = 0;  // the port on 127.0.0.1 here; differs from ForwardedPort::local if that was in use
};

// Callbacks get the index of the port in `ports`.
struct ForwardRequest {
  std::vector<ForwardedPort> ports{};
  std::string launch = "last";  // for ForwardedPort::rank; as in JobSelection::launches
  std::optional<Job> job{};     // the call returns when this job has ended
  std::function<void(std::size_t, const Listening&)> on_listening{};
  // A connection could not be made at the other end, so it was closed. Called again only after a connection
  // has succeeded.
  std::function<void(std::size_t, const Error&)> on_refused{};
  std::function<void(const Job&)> on_ended{};  // for ForwardRequest::job
};

// A program with a web interface.
enum class WebTool { tensorboard, jupyter };
struct WebRequest {
  WebTool tool = WebTool::tensorboard;
  std::string server{};         // default: the first one
  std::string folder = "runs";  // for tensorboard: folder of event files, relative to the project
  int local = 0;                // the port here; 0: 6006 or 8888. If it is in use, another one is chosen
  bool keep = false;            // keep running a job that this call started
  // Called before its port answers. `joined`: the job was already running, and will be left running.
  std::function<void(const Job&, bool joined)> on_job{};
  // The URL to open: "http://127.0.0.1:8888/…", including the job's access token. Secret.
  std::function<void(const Job&, const Listening&, const std::string& address)> on_address{};
  std::function<void(const Error&)> on_refused{};
  std::function<void(const Job&)> on_ended{};          // the job ended by itself
  std::function<void(const KillResult&)> on_killed{};  // this call was cancelled and killed the job
};

}  // namespace remote
