#include "agent/notify/deliver.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>

#include <fcntl.h>
#include <sys/file.h>

#include "agent/host/descriptor.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/record.hpp"
#include "agent/notify/compose.hpp"
#include "base/format.hpp"
#include "wire/read_json.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t longest_spec = std::size_t{32} << 20U;
constexpr std::chrono::minutes longest_pause{10};

Path find_file(const Delivery& delivery, const char* name) {
  return delivery.folder / (std::string(delivery.is_about_hang ? "notify.hung." : "notify.") + name);
}

// Writes the outcome, and removes the secret.
void finish(const Delivery& delivery, const std::string& result) {
  if (put_file(find_file(delivery, "result"), compose_line(result) + "\n") && !delivery.is_about_hang) {
    ::unlink((delivery.folder / "notify").c_str());
  }
}

void try_until_sent(const Delivery& delivery, const wire::NotifySpec& spec) {
  const Path mark = find_file(delivery, "mark");
  const Path result = find_file(delivery, "result");
  if (delivery.is_about_hang) {  // files of an earlier hang
    ::unlink(mark.c_str());
    ::unlink(result.c_str());
  }
  const std::chrono::milliseconds until = delivery.read_clock() + delivery.limit;
  std::chrono::milliseconds pause = delivery.first_pause;
  while (!has_entry(result)) {
    const Descriptor made(::open(mark.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!made && errno == EEXIST) {
      finish(delivery, "not known whether it arrived: its process died meanwhile");
    }
    if (!made) {
      return;  // the job's folder was removed
    }
    const SendResult attempt = delivery.send(spec);
    if (attempt.arrival != Arrival::failed) {
      finish(delivery, attempt.arrival == Arrival::sent      ? "sent"
                       : attempt.arrival == Arrival::unknown ? attempt.answer
                                                             : "not sent: " + attempt.answer);
      return;
    }
    const std::chrono::milliseconds left = until - delivery.read_clock();
    if (left.count() <= 0) {
      finish(delivery,
             text::format("not sent, tried for {} s: {}",
                          std::chrono::floor<std::chrono::seconds>(delivery.limit).count(), attempt.answer));
      return;
    }
    if (::unlink(mark.c_str()) != 0) {
      return;
    }
    delivery.sleep(std::min(pause, left));
    pause = std::min<std::chrono::milliseconds>(pause * 2, longest_pause);
  }
}

}  // namespace

void deliver_notification(const Delivery& delivery) {
  const Path path = delivery.folder / "notify";
  // NFS locks only files that are open for writing.
  const Descriptor file(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) {
    return;
  }
  if (!delivery.is_about_hang) {
    while (::flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  const auto spec = wire::try_read_json<wire::NotifySpec>(read_job_file(path, longest_spec).value_or(""));
  if (spec) {
    try_until_sent(delivery, *spec);
  }
}

}  // namespace remote::agent
