#include "evidence/shell.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "support/errors.h"

namespace harness::test {
namespace {

using testing::HasSubstr;

// Returns the words of a script's launch, without "torchrun": "a|b".
std::string words(const std::string& script, std::map<std::string, std::string> others = {}) {
  evidence::Shell shell(std::move(others));
  shell.run(script);
  if (shell.launches().empty()) return "none";
  std::vector<std::string> found = shell.launches().back().words;
  for (std::string& word : found) {
    if (evidence::is_unknown(word)) word = "? " + shell.why_unknown(word);
  }
  found.erase(found.begin());
  return join(found, "|");
}

TEST(Shell, SplitsWordsAsBashDoes) {
  EXPECT_EQ(words("A='x y'; torchrun $A \"$A\" '$A' \\$A a\"b c\"d"), "x|y|x y|$A|$A|ab cd");
  EXPECT_EQ(words("A=(\"--f hybrid\" b); torchrun ${A[@]} \"${A[@]}\" \"${A[*]}\" ${#A[@]} ${A[1]}"),
            "--f|hybrid|b|--f hybrid|b|--f hybrid b|2|b");
  EXPECT_EQ(words("A=\"--split '99,1'\"; torchrun $A"), "--split|'99,1'");
  EXPECT_EQ(words("A=(a # it's a comment\n b\n); A+=(c); torchrun \"${A[@]}\" x\\\n y"), "a|b|c|x|y");
  EXPECT_EQ(words("E=\"\"; torchrun $E \"$E\" z"), "|z");
}

TEST(Shell, ExpandsParametersAndArithmetic) {
  EXPECT_EQ(words("X=abc.txt; torchrun ${X%.txt} ${X##*.} ${X^^} ${#X} ${Y:-d} ${X:+s} ${Z:=q} $Z"),
            "abc|txt|ABC.TXT|7|d|s|q|q");
  EXPECT_EQ(words("N=3; M=6; torchrun $((N*$M+2)) $((2**5%7)) $(( (1+2)*3 > 8 && N == 3 ))"), "20|4|1");
  EXPECT_EQ(words("torchrun $((010 + 0x10)) $((09))"), "24|? line 1: arithmetic that is not understood");
  EXPECT_EQ(words("N=4; M=$(expr 32 / $N); torchrun $M `expr $N \\* 010 - 1` \"$(expr \\( 1 + 2 \\) '*' $N)\""),
            "8|39|12");
  EXPECT_EQ(
      words("torchrun $(expr 32/4) $(expr 3 / 0) $(expr $NODES \\* 8)"),
      "? line 1: the output of a command|? line 1: the output of a command|? line 1: NODES is not set in this script");
  EXPECT_EQ(words("A=1; A+=2; torchrun $A $'ab'"), "12|ab");
  EXPECT_EQ(words("X=a-b-c; M=o/m; torchrun ${X/-/+} ${X//-/ } \"${X//-}\" ${X/z/y} ${M//\\//_} ${X//\"-b\"/-}"),
            "a+b-c|a|b|c|abc|a-b-c|o_m|a--c");
  EXPECT_EQ(words("X=abcd; A=(p q r); torchrun ${X:2} ${X:0:1} ${X: -1} ${X:1:-1} ${X:9} ${A[@]:1} ${A[@]:0:1}"),
            "cd|a|d|bc|q|r|p");
  EXPECT_EQ(words("let N=3 'M = N * 2'; (( M += 1 )); (( K = M / N )); let K==9; torchrun $N $M $K"), "3|7|2");
  EXPECT_EQ(words("N=3; M=5; (( N++ )); let N++; (( --M )); (( Z=0 )); (( Z++ )) && K=1; torchrun $N $M $Z ${K:-none}"),
            "5|4|1|none");
  EXPECT_EQ(words("N=3; torchrun $((N++)) $((--N)) $((N += 4)) $((M = N)) $M"), "3|3|7|7|7");
  EXPECT_EQ(words("if (( N = 0 )); then N=5; fi; let M=$(nproc)*2; torchrun $N $M"),
            "0|? line 1: the output of a command");
  EXPECT_EQ(words("C=1,4,8; IFS=',' read -r T P E X <<< \"$C\"; read A B <<< ' p  q r '; torchrun $T $P $E -$X- $A $B"),
            "1|4|8|--|p|q|r");
  EXPECT_EQ(words("read A <<< \"$C\"; read B < file; torchrun $A $B"), "? line 1: read sets A|? line 1: read sets B");
  EXPECT_EQ(words("set -- a b c d; shift; X=$1; shift 2; torchrun $X $1 ${@:1:1}; shift 9"), "b|d|d");
  EXPECT_EQ(words("A[1]=x; torchrun ${A[0]}"), "? line 1: A[1]");
  EXPECT_EQ(words("S=7; a=0; declare -A L=([7]=32 [a]=4 [\"b c\"]=\"8 9\"); L+=([a]=5)\n"
                  "torchrun ${L[$S]} ${L[a]} \"${L[b c]}\" ${L[x]:-none}"),
            "32|5|8 9|none");
  EXPECT_EQ(words("declare -A L; L[a]=4; torchrun ${L[a]}"), "? line 1: L[a]");
}

TEST(Shell, TakesTheTextsOfHereDocumentsIntoVariables) {
  EXPECT_EQ(words("N=4\nread -r -d '' A <<EOF\n x $N\n'y'\nEOF\nread -rd '' B <<'EOF' || true\n$N\nEOF\n"
                  "torchrun \"$A\" \"$B\""),
            "x 4\n'y'|$N");
  EXPECT_EQ(
      words("N=4\nA=$(cat <<EOF\n$N\nEOF\n)\nB=\"$(cat <<-'END'\n\t$N\nEND\n)\"\nC=$(cat <<EOF | sort\nx\nEOF\n)\n"
            "torchrun \"$A\" \"$B\" $C"),
      "4|$N|? line 10: C is a command's output");
  EXPECT_EQ(words("W=$(cat <<EOF\ntorchrun a \\$N\nEOF\n)\nexport N=3\necho \"$W\" > w.sh\nbash w.sh"), "a|3");
  EXPECT_EQ(words("echo export N=3 > w.sh\necho torchrun '$N' >> w.sh\nbash w.sh"), "3");
}

TEST(Shell, ExportsAllBetweenSetMinusAAndPlusA) {
  evidence::Shell shell;
  shell.run("A=1; set -a; B=2; set +a; C=3\ntorchrun a\n");
  EXPECT_EQ(shell.launches().back().environment, (NameValues{{"B", "2"}}));
}

TEST(Shell, SaysWhatItDoesNotFollow) {
  EXPECT_EQ(words("X=a-b; torchrun ${X/-*/+} ${X/#a/b} ${X,} $((1 ? 2 : 3))"),
            "? line 1: ${/-*/+}|? line 1: ${/#a/b}|? line 1: ${,}|? line 1: arithmetic that is not understood");
  EXPECT_EQ(words("if [[ 8b =~ ^(a|8)b$ ]]; then A=1; else A=2; fi; torchrun $A"), "? line 1 decides A");
}

TEST(Shell, TakesEscapesOfQuotedDollars) {
  EXPECT_EQ(words("torchrun $'a\\tb\\\\c' $'it\\'s'"), "a\tb\\c|it's");
}

TEST(Shell, TakesBothBranchesOfWhatItCannotDecide) {
  EXPECT_EQ(words("A=\"-a\"; if [ -f x ]; then A=\"$A -b\"; fi; torchrun $A"), "-a|? line 1 decides A");
  EXPECT_EQ(words("A=(a); B=1\nif [[ -d x ]]; then A+=(b); B=1; else B=1; fi\ntorchrun ${A[@]} $B"),
            "a|? line 2 decides A|1");
  EXPECT_EQ(words("if [ ! -f x ]; then echo no; exit 1; fi; torchrun a"), "a");
  EXPECT_EQ(words("N=8; if nvidia-smi | grep -q GB200; then N=4; fi; hash srun && M=1 || M=2; torchrun $N $M"),
            "? line 1 decides N|? line 1 decides M");
  EXPECT_EQ(words("D=bf16; [[ $D == b* && -z \"$E\" || $D != x ]] && K=1 || K=2; torchrun $K"), "1");
  EXPECT_EQ(words("if [ -z \"$N\" ]; then N=4; fi; [[ -z $1 ]] && M=2; torchrun $N $M"), "4|2");
  EXPECT_EQ(words("Z=$2; if [ \"$Z\" == \"\" ]; then Z=3; fi; torchrun $Z"), "3");
  EXPECT_EQ(words("T=2; if [ $T -gt 1 -a $T -lt 9 ]; then N=4; fi; [ -f x -o 1 = 1 ] && M=2; torchrun $N $M"), "4|2");
  EXPECT_EQ(words("N=1; if [ -z \"$SLURM_NNODES\" ]; then N=4; fi; torchrun $N"), "? line 1 decides N");
  EXPECT_EQ(words("case 8b in 70b) L=80;; 8b|9b) L=32;; *) L=1;; esac; torchrun $L"), "32");
  EXPECT_EQ(words("case a in a) N=1;& b) M=2;; *) N=3;; esac; case a in a) K=1;;& *) L=2;; esac\n"
                  "torchrun $N $M $K $L"),
            "1|2|1|2");
  EXPECT_EQ(words("N=1; case $(hostname) in a) N=2;& *) M=3;; esac; torchrun $N $M"), "? line 1 decides N|3");
  EXPECT_EQ(words("P=1; case $(hostname) in a*) P=2;; b*) P=2;; esac; torchrun $P"), "? line 1 decides P");
  EXPECT_EQ(words("P=1; case $(hostname) in a*) P=2;; *) P=2;; esac; torchrun $P"), "2");
  EXPECT_EQ(words("for s in a b; do torchrun $s; done"), "? line 1: a loop changes s");
  EXPECT_EQ(words("while [[ $# -gt 0 ]]; do X=$1; shift; done; X=${X:-8}; torchrun $X"), "8");
  EXPECT_EQ(words("N=1; M=0; while [ $N -lt 8 ]; do N=$((N * 2)); done; for h in a b; do M=$((M + 1)); done\n"
                  "torchrun $N $M"),
            "? line 1 decides N|2");
  EXPECT_EQ(words("N=1; A=(); for i in 2 3; do N=$((N * i)); K=8; A+=(--a$i); done; torchrun $N $K ${A[@]} $i"),
            "6|8|--a2|--a3|3");
  for (const std::string loop : {"for i in {1..4}; do N=$((N + 1)); done", "for f in *.sh; do N=2; done",
                                 "for i in 1 2; do N=$i; break; done", "select N in 1 2; do break; done"})
    EXPECT_THAT(words("N=1\n" + loop + "\ntorchrun $N"), testing::StartsWith("? line 2")) << loop;
}

TEST(Shell, TakesTheStatusOfAFunction) {
  EXPECT_EQ(words("T=2; several() { [ $T -gt 4 ]; }; N=1; if several; then N=8; fi; several || M=3; torchrun $N $M"),
            "1|3");
  EXPECT_EQ(words("f() { if [ $1 = a ]; then return 1; fi; N=2; return 0; }; f a && N=3; f b && M=4\n"
                  "torchrun ${N:-none} $M"),
            "2|4");
  for (const std::string rest : {"fi; return 0", "else return 0; fi"})
    EXPECT_EQ(words("f() { if [ -f x ]; then return 1; " + rest + "; }; N=1; f && N=2; torchrun $N"),
              "? line 1 decides N");
}

TEST(Shell, EndsWithAFunctionThatExits) {
  EXPECT_EQ(words("one() { torchrun a; exit 0; }; N=1; if [ $N = 1 ]; then one; fi; torchrun b"), "a");
  EXPECT_EQ(words("usage() { echo no; exit 1; }; [ -f x ] || usage; [ -n \"$N\" ] || usage; torchrun b"), "b");
  EXPECT_EQ(words("f() { N=2; return; N=3; }; f; torchrun $N"), "2");
}

TEST(Shell, WhatASubshellSetsIsLostWithIt) {
  EXPECT_EQ(words("N=1; (N=2; exit 3); torchrun $N"), "1");
  EXPECT_EQ(words("N=1; (N=2; torchrun $N)"), "2");
  EXPECT_EQ(words("N=1; { N=2; }; torchrun $N"), "2");
}

// Every construct that expands or assigns, in every kind of skipped block.
TEST(Shell, WhatIsSkippedChangesNothing) {
  for (const std::string assigns :
       {"Z=2", "echo ${Z:=2}", "[ ${Z:=2} ]", "[[ ${Z:=2} ]]", "(( Z = 2 ))", "case ${Z:=2} in 2) Z=3;; esac",
        "for Z in 1 2; do :; done", "for i in ${Z:=2}; do :; done", "while [[ ${Z:=2} ]]; do break; done", "{ Z=2; }",
        "( Z=2 )", "export Z=2", "read Z", "let Z=2", "! Z=2", "a | [[ ${Z:=2} ]]", "f() { Z=2; }; f",
        "if [[ ${Z:=2} ]]; then Z=3; elif [[ ${Z:=4} ]]; then Z=5; else Z=6; fi", "cat > a.sh <<E\n${Z:=2}\nE"}) {
    for (const auto& [before, after] : std::map<std::string, std::string>{{"if false; then ", "\nfi"},
                                                                          {"if true; then :; else ", "\nfi"},
                                                                          {"true || { ", "\n}"},
                                                                          {"g() { ", "\n}"},
                                                                          {"case a in b) ", "\n;; esac"},
                                                                          {"while false; do ", "\ndone"}}) {
      const std::string script = before + assigns + after + "\ntorchrun ${Z:-none}";
      EXPECT_EQ(words(script), "none") << script;
    }
  }
}

TEST(Shell, RunsNothingAndOpensNothing) {
  const std::string mark = testing::TempDir() + "harness_shell_ran";
  std::filesystem::remove(mark);
  for (const std::string& how : std::vector<std::string>{
           "$(touch " + mark + ")", "`touch " + mark + "`", "; touch " + mark, "<(touch " + mark + ")",
           "; eval touch " + mark, "; eval \"touch " + mark + "\"", "$(rm -rf " + mark + ")", "> " + mark,
           "| tee " + mark, "; source /etc/profile; . /etc/profile"})
    words("torchrun a " + how + "\n");
  EXPECT_FALSE(std::filesystem::exists(mark));
  EXPECT_EQ(words("A=$(nvidia-smi -L | wc -l); torchrun $A"), "? line 1: A is a command's output");
  EXPECT_EQ(words("torchrun $HOME"), "? line 1: HOME is not set in this script");
}

TEST(Shell, WhatIsLocalToAFunctionIsLostWithIt) {
  EXPECT_EQ(words("N=1; f() { local N=$1 M=2; K=$((N * M)); }; f 4; torchrun $N ${M:-none} $K"), "1|none|8");
  EXPECT_EQ(words("N=1; f() { declare N=2; typeset -i M=2; declare -g K=$N; }; f; torchrun $N ${M:-none} $K"),
            "1|none|2");
  EXPECT_EQ(words("N=1; f() { bash go.sh; }; f; torchrun $N", {{"go.sh", "declare N=2"}}), "1");
  EXPECT_EQ(words("N=1; f() { K=${N}${M:-0}; }; N=4 M=2 f; torchrun $K $N ${M:-none}"), "42|1|none");
  EXPECT_EQ(words("f() { local N=8; export N; bash go.sh; }; f", {{"go.sh", "torchrun ${N:-2}"}}), "8");
}

TEST(Shell, FollowsFilesThatWereGiven) {
  EXPECT_EQ(words("source ./env.sh; torchrun $N", {{"env.sh", "export N=4"}}), "4");
  EXPECT_EQ(words("N=1; bash ./env.sh; torchrun $N", {{"env.sh", "export N=4"}}), "1");
  EXPECT_EQ(words("N=1; N=4 bash go.sh", {{"go.sh", "torchrun ${N:-2}"}}), "4");
  EXPECT_EQ(words("N=1; export M=4; bash go.sh", {{"go.sh", "torchrun ${N:-2} ${M:-2}"}}), "2|4");
  evidence::Shell shell;
  shell.run("N=4\ncat > c.json <<EOF\n{\"a\": $N}\nEOF\ncat <<'EOF' > d.json\n$N\nEOF\n");
  EXPECT_EQ(shell.documents().at("c.json"), "{\"a\": 4}\n");
  EXPECT_EQ(shell.documents().at("d.json"), "$N\n");
}

TEST(Shell, EndsWhateverItIsGiven) {
  const auto said = [](const std::string& script) { return error_of([&] { evidence::Shell().run(script); }); };
  std::string deep, quoted, doubling = "A=aaaaaaaa\n", chain = "true", tests = "[ ";
  std::string patterns = "A=" + std::string(4000, 'a') + "\n";
  for (int i = 0; i < 100'000; ++i) {
    deep += "if a; then ";
    quoted += "\"${A:-";
    chain += " && true";
    tests += "! ";
    patterns += "B=${A%a*a*b}\n";
  }
  for (int i = 0; i < 64; ++i) doubling += "A=$A$A\n";
  EXPECT_THAT(said(deep), HasSubstr("nested more than 64"));
  EXPECT_THAT(said("x=" + quoted), HasSubstr("nested more than 32"));
  for (const std::string& costly : {doubling, patterns}) EXPECT_THAT(said(costly), HasSubstr("its texts grow"));
  EXPECT_EQ(said(chain), "");
  EXPECT_EQ(said(tests + "]"), "");
  EXPECT_THAT(said("f() { f; f; }; f"), "");
  EXPECT_THAT(said("x=$((" + std::string(100'000, '(') + "))"), HasSubstr("nested more than"));
  EXPECT_EQ(said(std::string(1 << 20, '`') + std::string(1 << 20, '{') + "\\"), "");
}

}  // namespace
}  // namespace harness::test
