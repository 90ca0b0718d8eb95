#include "agent/notify/notify.hpp"

#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/host/run.hpp"
#include "agent/notify/deliver.hpp"
#include "agent/notify/send.hpp"
#include "wire/read_json.hpp"

namespace remote::agent {
namespace {

constexpr std::chrono::hours end_limit{1};
constexpr std::chrono::minutes hang_limit{10};

}  // namespace

wire::TryNotifyReply try_notify(const Host& host, const wire::NotificationToTry& request) {
  NotificationSender sender(host, request.program, request.activate);
  const SendResult attempt = sender.send(request.spec, {"test", "", "this is a test"});
  return {attempt.arrival == Arrival::sent, compose_line(attempt.answer)};
}

int run_notify(int count, char** words) {
  constexpr int wrong_usage = 2;
  const std::string_view about = words[0];
  auto task = wire::try_read_json<NotifyTask>(read_stdin());
  if (count != 3 || !task || (about != "end" && about != "hang")) {
    return wrong_usage;
  }
  const Host host = Host::of_this_process();
  NotificationSender sender(host, read_file(Path(words[2]) / "python/post.py").value_or(""),
                            std::move(task->activate));
  Delivery delivery{.folder = words[1], .is_about_hang = about == "hang"};
  delivery.limit = delivery.is_about_hang ? hang_limit : std::chrono::milliseconds(end_limit);
  delivery.send = [&](const wire::NotifySpec& spec) { return sender.send(spec, task->notification); };
  deliver_notification(delivery);
  return 0;
}

}  // namespace remote::agent
