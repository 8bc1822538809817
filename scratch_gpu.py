import torch, numpy as np, time, sys, warnings
warnings.simplefilter("ignore")
import triton
print(torch.__version__, triton.__version__, np.__version__, torch.cuda.get_device_name())
from bistochastic.backends import torch_search as ts, triton_kernels as tk
dev='cuda'
def clock(f, reps=5, warm=1):
    for _ in range(warm): out=f()
    ts_=[]
    for _ in range(reps):
        torch.cuda.synchronize(); t=time.perf_counter(); out=f(); torch.cuda.synchronize(); ts_.append(time.perf_counter()-t)
    return sorted(ts_)[len(ts_)//2]
a=torch.randn(1<<29,device=dev); b=torch.empty_like(a)
t=clock(lambda: b.copy_(a),10,3); print(f"copy {2*a.numel()*4/t/1e12:.2f} TB/s"); del a,b
def data(kind,n,d):
    g=torch.Generator(device=dev).manual_seed(0)
    if kind=='uniform': X=torch.rand(n,d,generator=g,device=dev,dtype=torch.float64)
    else:
        s=float(kind); C=torch.rand(20,d,generator=g,device=dev,dtype=torch.float64)*20-10
        y=torch.randint(0,20,(n,),generator=g,device=dev); X=C[y]+s*torch.randn(n,d,generator=g,device=dev,dtype=torch.float64)
    return X-X.median(0).values
def search(kind,n,d,m=15):
    X=data(kind,n,d); torch.cuda.reset_peak_memory_stats()
    print(f"--- {kind} {n}x{d}")
    try:
        t=clock(lambda: ts.divided(X),2); cells=ts.divided(X); print(f"divided {t*1e3:.1f} ms, {len(cells)} cells of {cells.size}")
        for near in (32,64,128):
            ts.NEAR=near
            rows=slice(0,1024)
            t=clock(lambda: ts.first_bounds(cells,rows,m,1<<30),2)
            bounds=ts.first_bounds(cells,rows,m,1<<30)
            st,ids=ts.possible_cells(cells,rows,bounds)
            t2=clock(lambda: ts.possible_cells(cells,rows,bounds),2)
            t3=clock(lambda: tk.within(cells,rows,bounds,st,ids,128),2)
            found,count=tk.within(cells,rows,bounds,st,ids,128)
            nums=ts._numbers(cells,found,count)
            t4=clock(lambda: ts.measured(X,cells.numbers[rows].reshape(-1),nums,m),2)
            f=len(cells)/1024
            pairs=int(st[-1])*cells.size**2
            print(f"near {near}: bounds {t*f*1e3:.0f} lists {t2*f*1e3:.0f} within {t3*f*1e3:.0f} (pairs {pairs*f:.3g}, {pairs/t3/1e12:.2f} T/s) measured {t4*f*1e3:.0f} ms; count mean {count.float().mean():.1f} max {int(count.max())} over128 {(count>128).float().mean():.4f}")
        ts.NEAR=64
        for how in ("exact",.98,.95):
            t=clock(lambda: ts.neighbors(X,m,how,tk),2); c,v,r=ts.neighbors(X,m,how,tk)
            print(f"whole {how}: {t*1e3:.0f} ms recall {r:.4f} peak {torch.cuda.max_memory_allocated()/2**30:.1f} GiB")
        s=ts._sampled(X,m,1<<30); 
        for w in (.9,.95,.98,.99): print('  look',w,ts._enough(cells,*s[:2],w),end='')
        c,v,r=ts.neighbors(X,m,"exact",tk)
        print("\n exact check", (c[s[0]].long()==s[1]).float().mean().item(), (v[s[0]][:,-1]-s[2]).abs().max().item())
        return X,c,v,cells
    except Exception as e:
        import traceback; traceback.print_exc(); return None
r=search('uniform',1_000_000,16)
search('2.5',1_000_000,16); search('5',1_000_000,16)
search('5',1_000_000,128)
def graph(c,v,n):
    i=torch.arange(n,device=dev).repeat_interleave(c.shape[1]); j=c.long().reshape(-1); w=torch.ones(i.numel(),device=dev,dtype=torch.float64)
    return i,j,w
if r:
    X,c,v,cells=r; n=len(X)
    from bistochastic.backends.torch_csr import _summed
    i,j,w=graph(c,v,n)
    t=clock(lambda: _summed(i,j,w,n),2); print(f"coalesce {t*1e3:.1f} ms")
    k=torch.cat([i*n+j,j*n+i]); t=clock(lambda: torch.sort(k),2); print(f"sort {k.numel()} int64 keys {t*1e3:.1f} ms"); del k
    order=cells.numbers.view(-1); order=order[order<n]; place=torch.empty_like(order); place[order]=torch.arange(n,device=dev)
    for name,(ii,jj) in {'given':(i,j),'cells':(place[i],place[j])}.items():
        S=_summed(ii,jj,w,n); S32=torch.sparse_csr_tensor(S.crow_indices().int(),S.col_indices().int(),S.values(),size=S.shape,check_invariants=False)
        Sf=torch.sparse_csr_tensor(S.crow_indices().int(),S.col_indices().int(),S.values().float(),size=S.shape,check_invariants=False)
        nnz=S.values().numel(); u=torch.rand(n,device=dev,dtype=torch.float64); V=torch.rand(n,25,device=dev,dtype=torch.float64)
        print(name,'nnz',nnz)
        t=clock(lambda:S@u,10,3); print(f" spmv int64 {t*1e3:.3f} ms {nnz*16/t/1e12:.2f} TB/s")
        t=clock(lambda:S32@u,10,3); print(f" spmv int32 {t*1e3:.3f} ms {nnz*12/t/1e12:.2f} TB/s")
        t=clock(lambda:tk.product(S32,u),10,3); print(f" spmv triton {t*1e3:.3f} ms {nnz*12/t/1e12:.2f} TB/s err {(tk.product(S32,u)-S32@u).abs().max().item():.1e}")
        t=clock(lambda:S32@V,5,2); print(f" spmm f64 25 {t*1e3:.3f} ms")
        Vf=torch.rand(n,25,device=dev); t=clock(lambda:Sf@Vf,5,2); print(f" spmm f32 25 {t*1e3:.3f} ms")
        for W in (16,32):
            A,B=torch.rand(n,W,device=dev),torch.rand(n,W,device=dev); terms=torch.tensor([1.,.5,.2],device=dev)
            t=clock(lambda:tk.three_term(Sf,A,B,terms),10,3); print(f" three_term f32 {W} {t*1e3:.3f} ms")
        A,B=A.double(),B.double(); terms=terms.double()
        t=clock(lambda:tk.three_term(S32,A,B,terms),5,2); print(f" three_term f64 32 {t*1e3:.3f} ms")
        t=clock(lambda:tk.mirrored(S32),5,2); print(f" mirrored {t*1e3:.2f} ms {tk.mirrored(S32)}")
        t=clock(lambda:tk.squared(S32),3,1); print(f" squared {t*1e3:.2f} ms")
    G=clock(lambda: V.T@V,5,2); print(f"gram f64 {G*1e3:.2f} ms"); M=torch.rand(25,25,device=dev,dtype=torch.float64); M=M+M.T
    print(f"V@W {clock(lambda: V@M,5,2)*1e3:.2f} ms eigh25 {clock(lambda: torch.linalg.eigh(M),5,2)*1e3:.2f} ms")
    T=torch.rand(n,16,device=dev,dtype=torch.float64); from bistochastic.graph.simplex import simplex
    import array_api_compat.torch as axp
    print(f"sort [n,16] {clock(lambda: torch.sort(T,dim=1),5,2)*1e3:.2f} ms simplex {clock(lambda: simplex(T),5,2)*1e3:.2f} ms")
# 1e8 graph
del r,S,S32,Sf,V,T; torch.cuda.empty_cache()
n=1_000_000
for kind in ('band','random'):
    half=50
    g=torch.Generator(device=dev).manual_seed(1)
    i=torch.arange(n,device=dev).repeat_interleave(half)
    j=(i+torch.randint(1,(400 if kind=='band' else n),(n*half,),generator=g,device=dev))%n
    S=_summed(i,j,torch.rand(n*half,device=dev,dtype=torch.float64,generator=g),n); nnz=S.values().numel()
    S32=torch.sparse_csr_tensor(S.crow_indices().int(),S.col_indices().int(),S.values(),size=S.shape,check_invariants=False); del S,i,j
    u=torch.rand(n,device=dev,dtype=torch.float64)
    t=clock(lambda:S32@u,10,3); print(kind,f"nnz {nnz} cusparse {t*1e3:.3f} ms {nnz*12/t/1e12:.2f} TB/s",end=' ')
    t=clock(lambda:tk.product(S32,u),10,3); print(f"triton {t*1e3:.3f} ms {nnz*12/t/1e12:.2f} TB/s", end=' ')
    t=clock(lambda:tk.mirrored(S32),3,1); print(f"mirrored {t*1e3:.2f} ms")
