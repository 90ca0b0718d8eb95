#include "servers/init_file.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/strings.hpp"
#include "servers/agent.hpp"

namespace remote::servers {
namespace {

wire::InitFileReply ask(ssh::Connection& connection, wire::InitFileRequest request, const Cancel& cancel) {
  AgentQuestion question;
  question.what = "shared file of a launch";
  question.timeout = std::chrono::seconds(request.step == wire::InitFileStep::drop ? 10 : 30);
  question.request = std::move(request);
  return take_reply<wire::InitFileReply>(ask_agent(connection, question, cancel));
}

// torch uses the text between "file://" and the first of these characters as the path, and decodes nothing.
bool fits_into_url(std::string_view path) {
  return path.find_first_of("?#;") == std::string_view::npos &&
         std::ranges::none_of(path, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

}  // namespace

wire::InitFileReply check_reply(wire::InitFileReply reply) {
  if (!reply.failure.empty()) {
    return reply;
  }
  if (!reply.folder.starts_with('/') || reply.folder.find("/.remote-init-") == std::string::npos) {
    throw Error("the server's answer is not understood", "the path of the shared file is wrong")
        .mended_by(Remedy::tell_more);
  }
  if (!fits_into_url(reply.folder)) {
    reply.failure = fmt::format("{} has a character that torch does not accept in file://…",
                                visible_line(reply.folder, 300));
  }
  return reply;
}

wire::InitFileReply make_init_file(ssh::Connection& connection, const std::string& folder,
                                   const JobId& launch, bool make_all, const Cancel& cancel) {
  const auto step = make_all ? wire::InitFileStep::make_all : wire::InitFileStep::make;
  return check_reply(ask(connection, {step, folder, launch.text()}, cancel));
}

wire::InitFileReply see_init_file(ssh::Connection& connection, const std::string& folder, const JobId& launch,
                                  const std::string& maker, const Cancel& cancel) {
  return check_reply(ask(connection, {wire::InitFileStep::see, folder, launch.text(), maker}, cancel));
}

void drop_init_file(ssh::Connection& connection, const std::string& folder, const JobId& launch,
                    const Cancel& cancel) {
  ask(connection, {wire::InitFileStep::drop, folder, launch.text()}, cancel);
}

std::string init_file_text(std::size_t jobs, const std::string& folder) {
  return fmt::format("{}\n{}", jobs, folder);
}

std::string init_file_url(const std::string& folder) {
  return "file://" + folder + "/store";
}

}  // namespace remote::servers
