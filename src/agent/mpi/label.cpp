#include "agent/mpi/label.hpp"

#include <array>
#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/path.hpp"
#include "agent/job/job_files.hpp"

namespace remote::agent {
namespace {

// Longer lines are split, so that none has more than 64 KiB.
constexpr std::size_t longest_labelled = 49152;

struct LabelledStream {
  int from = -1;  // -1: it has ended
  int file = -1;
  int to = -1;
  std::string rest{};  // an incomplete line

  // Opens a pipe for the rank's output, and the output file. Returns false on failure.
  bool open(const std::string& path, int& rank_end) {
    std::array<int, 2> ends{-1, -1};
    // Attempts of a launch append to the same file.
    file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (file < 0 || ::pipe2(ends.data(), O_CLOEXEC) != 0) {
      return false;
    }
    from = ends[0];
    rank_end = ends[1];
    return true;
  }

  // Writes only whole lines to `to`, each in a single write, because other ranks write there too.
  void copy(const std::string& label) {
    std::array<char, 16384> buffer;
    const ssize_t count = ::read(from, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) {
      return;
    }
    const std::string_view text(buffer.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
    write_whole(file, text);  // a full disk must not stop the rank
    rest += text;
    const bool has_ended = text.empty();
    if (has_ended) {
      from = -1;
    }
    if ((has_ended && !rest.empty()) || rest.size() >= longest_labelled) {
      rest += '\n';
    }
    std::string lines;
    std::size_t begin = 0;
    for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', begin)) {
      lines.append(label).append(rest, begin, end + 1 - begin);
      begin = end + 1;
    }
    rest.erase(0, begin);
    write_whole(to, lines);
  }
};

}  // namespace

LabelledOutput start_labeller(const std::string& rank) {
  ::mkdir("ranks", 0700);
  LabelledOutput output;
  std::array<LabelledStream, 2> streams;
  if (!is_own_folder("ranks") || !streams[0].open("ranks/" + rank + ".out", output.out) ||
      !streams[1].open("ranks/" + rank + ".err", output.err)) {
    return {};
  }
  const pid_t pid = ::fork();
  if (pid < 0) {
    return {};
  }
  if (pid > 0) {
    ::close(streams[0].from);
    ::close(streams[1].from);
    output.labeller = pid;
    return output;
  }
  ::setsid();  // MPICH's mpirun kills the rank's process group
  ::close(output.out);
  ::close(output.err);
  streams[0].to = STDOUT_FILENO;
  streams[1].to = STDERR_FILENO;
  const std::string label = "[" + rank + "] ";
  while (streams[0].from >= 0 || streams[1].from >= 0) {
    std::array<pollfd, 2> ready{pollfd{streams[0].from, POLLIN, 0}, pollfd{streams[1].from, POLLIN, 0}};
    ::poll(ready.data(), ready.size(), -1);
    for (std::size_t i = 0; i < ready.size(); ++i) {
      if (ready[i].revents != 0) {
        streams[i].copy(label);
      }
    }
  }
  _exit(0);
}

}  // namespace remote::agent
