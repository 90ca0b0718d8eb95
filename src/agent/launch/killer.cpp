#include "agent/launch/killer.hpp"

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/run.hpp"
#include "agent/job/answers.hpp"

namespace remote::agent {

void Killer::start(const std::string& by, const std::vector<std::string>& ids) {
  Pipe pipe = open_pipe();
  if (!pipe) {
    return;
  }
  end_ = std::move(pipe.read_end);
  const Descriptor open = std::move(pipe.write_end);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::setsid();  // a stop does not signal processes of its own session
    std::signal(SIGTERM, SIG_IGN);
    close_descriptors(STDERR_FILENO + 1, open.get());
    std::vector<std::string> words{folder_.jobs.string(), "15", "5", by};
    words.insert(words.end(), ids.begin(), ids.end());
    std::vector<char*> pointers = pointers_to(words);
    ::_exit(run_stop(static_cast<int>(words.size()), pointers.data()));
  }
  if (pid_ < 0) {
    end_.reset();
  }
}

std::optional<bool> Killer::check_end() {
  int status = 0;
  const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) {
    return std::nullopt;
  }
  pid_ = -1;
  end_.reset();
  return ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace remote::agent
