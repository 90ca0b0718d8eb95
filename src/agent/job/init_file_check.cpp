#include "agent/job/init_file_check.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/descriptor.hpp"
#include "agent/host/run.hpp"
#include "agent/job/init_file.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/own_folder.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

using wire::InitFileStep;

// The message becomes InitFileReply::failure.
[[noreturn]] void fail_check(const std::string& reason) {
  throw std::runtime_error(reason);
}

class InitFileCheck {
 public:
  InitFileCheck(const Host& host, const wire::InitFileRequest& request)
      : host_(host),
        request_(request),
        folder_(host.expand(request.folder)),
        own_(folder_ / (".remote-init-" + request.launch)) {}

  std::string check() {
    const bool makes_all = request_.step == InitFileStep::make_all;
    if (!is_folder(folder_) && !(makes_all && make_folders(folder_, 0777))) {
      fail_check(makes_all ? "cannot create " + folder_.string() +
                                 ": permission denied, or the disk is full or read-only"
                           : "there is no folder " + folder_.string());
    }
    if (::access(folder_.c_str(), X_OK) != 0) {
      fail_check("no permission to enter " + folder_.string());
    }
    if (request_.step != InitFileStep::see) {
      make();
    } else if (!is_folder(own_)) {
      fail_check(folder_.string() + " is not the same folder as on " + request_.maker + ": what " +
                 request_.maker + " wrote there is not visible");
    }
    use();
    return own_.string();
  }
  void drop() const { remove_shared_folder(own_.string()); }

 private:
  [[noreturn]] void fail_write() const {
    fail_check("cannot write in " + folder_.string() + ": " + ::strerror(errno));
  }

  // Does not follow links, because another user may replace the folder with one that contains links.
  Descriptor open_own() const {
    return Descriptor(::open(own_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  static Descriptor open_launch(const Descriptor& own, int flags) {
    return Descriptor(
        ::openat(own.get(), "launch", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags, 0600));
  }

  void make() const {
    if (::mkdir(own_.c_str(), 0700) != 0) {
      fail_write();
    }
    const Descriptor own = open_own();
    const Descriptor launch = open_launch(own, O_CREAT | O_EXCL);
    // A full disk may be reported only by fsync().
    if (!launch || !write_whole(launch.get(), request_.launch + "\n") || ::fsync(launch.get()) != 0) {
      const int error = errno;
      ::unlinkat(own.get(), "launch", 0);
      ::rmdir(own_.c_str());
      errno = error;
      fail_write();
    }
  }

  void use() const {
    const Descriptor own = open_own();
    if (!own || ::access(own_.c_str(), X_OK) != 0) {
      fail_check("no permission to enter the folder created in " + folder_.string() +
                 ": does another user log in here?");
    }
    const std::string id = read_launch_id(own.get());
    if (id.empty()) {
      fail_check("cannot read in " + folder_.string() + " the file that was written there");
    }
    if (id != request_.launch) {
      fail_check("a file in " + folder_.string() + " differs from the one that was written there");
    }
    const Descriptor launch = open_launch(own, 0);
    if (!launch) {
      fail_check("cannot write in " + folder_.string());
    }
    // Runs in a separate process, because on NFS it may hang in the kernel.
    if (!host_.find_program("flock").empty() &&
        !run(host_, {.argv = {"flock", "-x", "0"}, .limit = std::chrono::seconds(10), .input = launch.get()})
             .succeeded()) {
      fail_check(folder_.string() + " has no file locks (flock), which torch needs");
    }
  }

  const Host& host_;
  const wire::InitFileRequest& request_;
  Path folder_;
  Path own_;
};

}  // namespace

wire::InitFileReply check_init_file(const Host& host, const wire::InitFileRequest& request) {
  InitFileCheck check(host, request);
  try {
    if (request.step == InitFileStep::drop) {
      check.drop();
      return {};
    }
    return {.folder = check.check()};
  } catch (const CannotStart&) {
    throw;  // becomes a refusal
  } catch (const std::runtime_error& error) {
    return {.failure = wire::to_line(error.what(), 1000)};
  }
}

}  // namespace remote::agent
