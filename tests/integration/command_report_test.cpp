// `remote report`: one page about a launch, and the page that --watch serves.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/strings.hpp"
#include "cli/report/page_server.hpp"
#include "support/command_world.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

class CommandReport : public ::testing::Test {
 protected:
  CommandWorld world;

  nlohmann::json report(std::vector<std::string> words) {
    words.insert(words.begin(), "report");
    words.push_back("--json");
    const CommandResult result = world.run(words);
    EXPECT_EQ(result.code, 0) << result;
    return result.json();
  }
};

TEST_F(CommandReport, OfAFailedLaunchSaysTheCauseAndDrawsItsNumbers) {
  ASSERT_EQ(world
                .run({"launch", "--nproc-per-node", "2", "--failure-grace", "0", "--follow", "--cmd",
                      "for i in 1 2 3; do echo \"step $i loss 0.$RANK$i\"; done; [ $RANK != 3 ] || { echo "
                      "'because of <this>' >&2; exit 7; }; "
                      "exec sleep 1000"})
                .code,
            1);
  const CommandResult made = world.run({"report"});
  ASSERT_EQ(made.code, 0) << made;
  const fs::path file(trim(made.out));
  EXPECT_EQ(file, world.project() / ".remote/reports/launch-1.html");
  const std::string page = read_file(file);
  EXPECT_THAT(page, HasSubstr("because of \\u003cthis\\u003e"));

  const auto data = report({"--launch", "3"});
  EXPECT_EQ(data["state"], "failed");
  EXPECT_THAT(data["cause"]["title"].get<std::string>(), StartsWith("rank 3 on b failed first (exit 7"));
  EXPECT_EQ(data["cause"]["lines"][0], "because of <this>");
  EXPECT_EQ(data["jobs"].size(), 4U);
  EXPECT_EQ(data["curves"].size(), 4U);
  EXPECT_EQ(data["curves"][2]["name"], "loss");
  EXPECT_EQ(data["curves"][2]["rank"], 2);
  EXPECT_THAT(data["curves"][2]["values"].get<std::vector<double>>(), ElementsAre(0.21, 0.22, 0.23));
  EXPECT_THAT(data["curves"][2]["at"].get<std::vector<double>>(), ElementsAre(1, 2, 3));

  // A server that is gone takes nothing away that is here.
  world.cut_off({"a", "b"});
  EXPECT_EQ(report({"--offline"})["curves"].size(), 4U);
}

TEST_F(CommandReport, OfOneJobIntoAGivenFile) {
  const Job job = world.ended_job("a", "echo fine");
  const fs::path file = world.project() / "my report.html";
  const CommandResult made = world.run({"report", "--job", std::to_string(job.key), "--out", file.string()});
  EXPECT_THAT(made, Ends(0, file.string() + "\n", IsEmpty()));
  EXPECT_THAT(read_file(file), HasSubstr("fine"));
  EXPECT_EQ(report({std::to_string(job.key)})["state"], "succeeded");
}

TEST_F(CommandReport, WithoutAnyJobSaysSo) {
  EXPECT_THAT(world.run({"report"}), Refused("no jobs"));
  EXPECT_THAT(world.run({"report", "--launch", "9"}), Refused("9"));
}

// What a server answers to these bytes.
std::string ask(const std::string& address, const std::string& request) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(address.substr(std::string("http://127.0.0.1:").size()))));
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  EXPECT_EQ(::write(fd.get(), request.data(), request.size()), static_cast<ssize_t>(request.size()));
  std::string answer;
  char piece[4096];
  for (ssize_t count = 0; (count = ::read(fd.get(), piece, sizeof piece)) > 0;) {
    answer.append(piece, static_cast<std::size_t>(count));
  }
  return answer;
}

TEST(CommandReportServer, GivesThePageToThoseWhoKnowItsAddress) {
  cli::PageServer server;
  server.set("the page", "{\"a\":1}");
  const std::string address = server.address();
  const std::size_t slash = address.find('/', 8);
  const std::string host = address.substr(7, slash - 7);
  const std::string path = address.substr(slash);
  const auto get = [&](const std::string& what, const std::string& name) {
    return ask(address, fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", what, name));
  };
  EXPECT_THAT(get(path, host), AllOf(HasSubstr("200 OK"), HasSubstr("the page")));
  EXPECT_THAT(get(path + "data.json", host), HasSubstr("{\"a\":1}"));
  EXPECT_THAT(get("/", host), HasSubstr("404"));
  EXPECT_THAT(get("/data.json", host), AllOf(HasSubstr("404"), Not(HasSubstr("{\"a\""))));
  EXPECT_THAT(get(path, "evil.example:80"), AllOf(HasSubstr("404"), Not(HasSubstr("the page"))));
  EXPECT_THAT(ask(address, "POST " + path + " HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 0\r\n\r\n"),
              Not(HasSubstr("the page")));
  EXPECT_EQ(ask(address, std::string(100000, 'x') + "\r\n\r\n").find("the page"), std::string::npos);
  EXPECT_THAT(get(path, host), HasSubstr("the page"));  // and it still serves
}

TEST_F(CommandReport, WatchServesWhatTheLaunchDoesUntilCtrlC) {
  const Job job =
      world.job("a", "echo step 1 loss 3; until test -e go; do sleep 0.01; done; echo step 2 loss 2");
  const auto running = world.start({"report", "--watch", "--job", std::to_string(job.key)});
  until([&] { return running->out().ends_with("\n"); }, "the address");
  const std::string address(trim(running->out()));
  EXPECT_THAT(address, StartsWith("http://127.0.0.1:"));
  const std::size_t slash = address.find('/', 8);
  const std::string request = fmt::format("GET {}data.json HTTP/1.1\r\nHost: {}\r\n\r\n",
                                          address.substr(slash), address.substr(7, slash - 7));
  EXPECT_THAT(ask(address, request), HasSubstr("\"running\""));
  write_file_atomic(world.there("a") / "go", "");
  until([&] { return ask(address, request).find("\"state\":\"succeeded\"") != std::string::npos; },
        "the end of the job on the page");
  EXPECT_THAT(ask(address, request), HasSubstr("\"values\":[3.0,2.0]"));
  running->interrupt();
  EXPECT_EQ(running->wait().code, 130);
}

}  // namespace
}  // namespace remote::test
