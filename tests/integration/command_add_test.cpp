// `remote add` and `remote remove` with simulated servers.

#include "base/files.hpp"
#include "support/command_world.hpp"

namespace remote::test {
namespace {

class CommandAdd : public ::testing::Test {
 protected:
  CommandAdd() {
    world.configure("name: proj\npython: {manager: system}\nservers:\n  a: {hostname: a}  # the first\n");
  }
  std::string config() { return *read_file_if_there(world.project() / ".remote/configs.yaml"); }
  CommandWorld world;
};

TEST_F(CommandAdd, TheLineOfAProvider) {
  const CommandResult added =
      world.run({"add", "b", "ssh -p 40022 root@b -i ~/.ssh/id_ed25519 -L 8080:localhost:8080"});
  EXPECT_THAT(added, Ends(0, HasSubstr("b: the login works, "),
                          AllOf(HasSubstr("added b: root@b:40022"),
                                HasSubstr("not taken over: -L 8080:localhost:8080"))));
  EXPECT_THAT(config(), HasSubstr("  a: {hostname: a}  # the first\n  b:\n    hostname: b\n    port: 40022\n"
                                  "    username: root\n    private_key: ~/.ssh/id_ed25519\n"));
  EXPECT_THAT(world.run({"servers", "-v", "--server", "b"}).out, HasSubstr("40022"));
  const CommandResult moved = world.run({"add", "b", "root@b:40023", "--no-login"});
  EXPECT_THAT(moved, Ends(0, "", HasSubstr("b is now root@b:40023")));
  EXPECT_THAT(config(), HasSubstr("port: 40023\n"));
  EXPECT_THAT(world.run({"add", "b", "root@b:40023", "--no-login"}).err, HasSubstr("already"));
  EXPECT_THAT(world.run({"--json", "add", "b", "ssh -A root@b -p 7"}).json()["left_out"],
              nlohmann::json({"-A"}));
}

TEST_F(CommandAdd, AMachineThatDoesNotAnswerStaysInTheFile) {
  world.cut_off({"c"});
  const CommandResult result = world.run({"add", "c", "c"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("injected fault"), HasSubstr("c stays in configs.yaml")));
  EXPECT_THAT(config(), HasSubstr("  c:\n    hostname: c\n"));
}

TEST_F(CommandAdd, WrongLinesChangeNothing) {
  const std::string before = config();
  EXPECT_THAT(world.run({"add", "b", "ssh -p"}), Refused("-p has no value"));
  EXPECT_THAT(world.run({"add", "b c", "h"}), Refused("server 'b c'"));
  EXPECT_THAT(world.run({"add", "b"}), Refused("address"));
  EXPECT_THAT(world.run({"remove", "b"}), Refused("there is no server 'b'"));
  EXPECT_EQ(config(), before);
}

TEST_F(CommandAdd, RemoveAsksIfJobsRunThere) {
  EXPECT_EQ(world.run({"add", "b", "b", "--no-login"}).code, 0);
  world.job("b", "exec sleep 1000");
  EXPECT_THAT(world.run({"remove", "b"}), Refused("1 unfinished job on b"));
  EXPECT_EQ(world.run({"job-kill", "--all", "--yes"}).code, 0);
  EXPECT_THAT(world.run({"remove", "b"}), Ends(0, "", HasSubstr("removed b from configs.yaml")));
  EXPECT_THAT(config(), HasSubstr("  a: {hostname: a}  # the first\n"));
  EXPECT_THAT(config(), Not(HasSubstr("b:")));
}

}  // namespace
}  // namespace remote::test
